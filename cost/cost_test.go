package cost

import (
	"strings"
	"testing"
)

func amount(t *testing.T, text string) Amount {
	t.Helper()
	a, err := ParseAmount(text)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAmounts(t *testing.T) {
	for text, want := range map[string]string{"2.50": "2.50", "0": "0.00", "7": "7.00", "0.075": "0.075", "0.1": "0.10", "1234567890123456789.12": "1234567890123456789.12"} {
		if got := amount(t, text).String(); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
	for _, text := range []string{"", "-1", "1e3", "1/3", ".5", "2.", "1,5", "0x10", "1_000", " 1", strings.Repeat("9", 31), "NaN"} {
		if a, err := ParseAmount(text); err == nil {
			t.Errorf("%q: %v", text, a)
		}
	}
	// In floats 0.1 + 0.2 is not 0.3.
	if sum := amount(t, "0.1").Plus(amount(t, "0.2")); sum.Cmp(amount(t, "0.3")) != 0 || sum.Minus(amount(t, "0.3")).Cmp(Amount{}) != 0 {
		t.Error(sum)
	}
	for text, want := range map[string]string{"0": "0.00", "2.5": "2.50", "0.0000123456": "0.0000123", "0.0123": "0.0123", "1234.5678": "1234.57"} {
		if got := amount(t, text).Short(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// 0.075 for a million: one token is 0.000000075, and 13,333,333 of them are
// 0.999999975. With outputs at 1.50 a million, 7 of those are 0.0000105.
func TestRateIsExact(t *testing.T) {
	p, err := Read("p", []byte("currency: USD\ndate: 2026-08-01\nsource: list\ntokens: {input_per_million: \"0.075\", output_per_million: \"1.50\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.Rate("", "any")
	if err != nil || r.Of(13_333_333, 7).String() != "1.000010475" || r.Of(1, 0).String() != "0.000000075" || r.Of(0, 0).String() != "0.00" {
		t.Errorf("%v %v %v", r.Of(13_333_333, 7), r.Of(1, 0), err)
	}
}

func TestRateOfModels(t *testing.T) {
	p, err := Read("p", []byte(`currency: EUR
date: 2026-08-01
source: list
models:
  one: {m: {tokens: {input_per_million: "1", output_per_million: "2"}}, own: {gpu: {count: 2, per_hour: "3"}}}
  two: {m: {tokens: {input_per_million: "3", output_per_million: "4"}}, n: {tokens: {input_per_million: "5", output_per_million: "6"}}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ provider, model, want string }{
		{"", "n", "5.00"},
		{"one", "m", "1.00"},
		{"two", "m", "3.00"},
	} {
		if r, err := p.Rate(c.provider, c.model); err != nil || r.Of(1_000_000, 0).String() != c.want {
			t.Errorf("%+v: %v %v", c, r, err)
		}
	}
	for _, c := range []struct{ provider, model, want string }{
		{"", "m", `one and two have prices for model "m"`},
		{"", "x", `there is no price for model "x"; there are prices for m, n, own`},
		{"", "own", "by the hour"},
	} {
		if _, err := p.Rate(c.provider, c.model); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestMistakes(t *testing.T) {
	for file, want := range map[string]string{
		"currency: dollars\ndate: 2026-08-01\nsource: x\ngpu: {count: 1, per_hour: \"1\"}":                                       "p:1:11: currency: must be three capital letters",
		"currency: USD\ndate: yesterday\nsource: x\ngpu: {count: 1, per_hour: \"1\"}":                                            "p:2:7: date: must be the day",
		"currency: USD\ndate: 2026-08-01\ngpu: {count: 0, per_hour: \"1\"}":                                                      "p:3:14: gpu.count: must be 1 or more",
		"currency: USD\ndate: 2026-08-01\nsource: x":                                                                             "needs one of gpu, tokens and models, and has 0",
		"currency: USD\ndate: 2026-08-01\nsource: x\ntokens: {input_per_million: \"free\", output_per_million: \"1\"}":           `p:4:29: tokens.input_per_million: must be an amount such as 2.50, not "free"`,
		"currency: USD\ndate: 2026-08-01\nsource: x\ntokens: {input_per_million: \"1\"}":                                         `tokens.output_per_million: must be an amount`,
		"currency: USD\ndate: 2026-08-01\nsource: x\ntoken: {input_per_million: \"1\"}":                                          `unknown key "token"`,
		"currency: USD\ndate: 2026-08-01\nsource: x\nmodels: {a: {m: {}}}":                                                       "models.a.m: needs one of gpu and tokens",
		"currency: USD\ndate: 2026-08-01\nsource: x\nmodels: {a: {m: {tokens: {input_per_million: -1, output_per_million: 1}}}}": `models.a.m.tokens.input_per_million: must be an amount such as 2.50, not "-1"`,
	} {
		if _, err := Read("p", []byte(file)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %s", file, err, want)
		}
	}
}
