package spec

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/internal/conf"
)

// One rule for URLs, headers and bodies.
func TestSecretNames(t *testing.T) {
	for _, name := range strings.Fields(`token api_token hf_token user_token access_token apiToken hfToken HFToken sessionToken token2 session.token
		bearer private_key key KEY apikey api_key apiKey APIKey X-Api-Key Ocp-Apim-Subscription-Key subscription-key key_id api_keys pwd passwd password passphrase
		db_password secret client_secret clientSecret clientsecret auth Authorization Proxy-Authorization cookie Set-Cookie sig signature X-Amz-Signature
		X-Amz-Credential credentials sas jwt code accesstoken hftoken cache_salt`) {
		if !isSecret(name) {
			t.Errorf("%s is taken for public", name)
		}
	}
	for _, name := range strings.Fields(`max_tokens min_tokens max_completion_tokens maxTokens logit_bias top_logprobs stop version model temperature
		prompt_cache_key eos_token add_special_tokens skip_special_tokens return_tokens_as_ids prompt_tokens author authored passage compass bypass signal
		keyboard keyword monkeys tokenizer tokenize codec encoding_format country_code secretary api-version deployment user seed`) {
		if isSecret(name) {
			t.Errorf("%s is taken for a secret", name)
		}
	}
}

// Everywhere that a value can stand, and nothing that is no text.
func TestSecretsOfBodies(t *testing.T) {
	body := map[string]any{
		"max_tokens": 5, "logit_bias": map[string]any{"50256": -100}, "stop": []any{"END."}, "stop_token_ids": []any{1, 2},
		"hfToken": "sssss1", "key": "no", "api_keys": []any{"sssss2", "sssss3"},
		"deep":            []any{map[string]any{"private_key": "sssss4", "user": "plain"}},
		"response_format": map[string]any{"properties": map[string]any{"token": map[string]any{"type": "string"}}},
	}
	want := map[string]any{
		"max_tokens": 5, "logit_bias": map[string]any{"50256": -100}, "stop": []any{"END."}, "stop_token_ids": []any{1, 2},
		"hfToken": Removed, "key": Removed, "api_keys": []any{Removed, Removed},
		"deep":            []any{map[string]any{"private_key": Removed, "user": "plain"}},
		"response_format": map[string]any{"properties": map[string]any{"token": map[string]any{"type": "string"}}},
	}
	if diff := cmp.Diff(want, withoutSecrets(body)); diff != "" {
		t.Error(diff)
	}
	found := bodySecrets(body)
	slices.Sort(found)
	if !slices.Equal(found, []string{"sssss1", "sssss2", "sssss3", "sssss4"}) {
		t.Errorf("%q", found)
	}
	if !lacksSecret(want) || lacksSecret(body) {
		t.Error("what was removed is not seen")
	}
}

func TestSecretsOfQueries(t *testing.T) {
	const query = "code=abc1&hfToken=abc2&key=abc3&api-version=7&max_tokens=9"
	shown := publicURL("https://h/v1?" + query)
	u, err := url.Parse(shown)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"code": Removed, "hfToken": Removed, "key": Removed, "api-version": "7", "max_tokens": "9"} {
		if got := u.Query().Get(name); got != want {
			t.Errorf("%s=%s, not %s", name, got, want)
		}
	}
}

func TestPortsAndPlaceholders(t *testing.T) {
	for settings, want := range map[string]string{
		"target.url=http://h:99999":                                         "target.url: has port 99999, and ports are from 1 to 65535",
		"target.url=http://h:0":                                             "target.url: has port 0, and",
		"target.url=http://h:65535":                                         "",
		"target.url=http://h:1 target.headers.X-A=a-{nope}":                 "target.headers.X-A: {nope} is not known; there are {index}, {session}, {seed} (as it stands it is written {{nope}})",
		"target.url=http://h:1 target.headers.X-A=a-{{nope}}-{index}-{x:1}": "",
	} {
		sets := []conf.Setting{{Path: "schedule.rate", Value: "1"}}
		for _, one := range strings.Fields(settings) {
			path, value, _ := strings.Cut(one, "=")
			sets = append(sets, conf.Setting{Path: path, Value: value})
		}
		_, err := Read("", nil, sets)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", settings, err)
		}
	}
}
