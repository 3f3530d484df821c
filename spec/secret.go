package spec

import (
	"slices"
	"strings"
	"unicode"
)

// isSecret guesses from the name of a header, a parameter of a URL or a field of a
// body that its value is a secret. Names are taken apart into words, so that
// api_key, apiKey, X-API-Key and hf.token are alike and max_tokens is none of them.
func isSecret(name string) bool {
	words := wordsOf(name)
	whole := strings.Join(words, "_")
	if slices.Contains(openNames, whole) {
		return false
	}
	return whole == "code" || slices.ContainsFunc(words, isSecretWord) // OAuth's code
}

// openNames are parameters of APIs that only sound like secrets.
var openNames = []string{"prompt_cache_key", "eos_token", "bos_token", "pad_token", "unk_token", "stop_token"}

// secretWords are words that no other thing is named by.
var secretWords = []string{
	"auth", "authorization", "bearer", "cookie", "credential", "credentials", "jwt", "pass", "passwd", "passphrase", "password",
	"passwords", "pwd", "salt", "sas", "secret", "secrets", "sig", "signature", "keys",
}

// isSecretWord takes words that were run together too, such as apikey, hftoken and
// clientsecret. Tokens in the plural are counts of them.
func isSecretWord(word string) bool {
	if slices.Contains(secretWords, word) {
		return true
	}
	for _, end := range []string{"key", "token", "secret", "password", "cookie"} {
		if strings.HasSuffix(word, end) {
			return true
		}
	}
	return strings.HasPrefix(word, "apikey")
}

// wordsOf takes a name apart at everything that is no letter, and where an upper
// case letter begins a word; in lower case.
func wordsOf(name string) []string {
	var words []string
	letters := []rune(name)
	from := -1 // of the word at hand
	end := func(i int) {
		if from >= 0 {
			words = append(words, strings.ToLower(string(letters[from:i])))
		}
		from = -1
	}
	for i, c := range letters {
		switch {
		case !unicode.IsLetter(c):
			end(i)
			continue
		case from < 0:
		case unicode.IsUpper(c) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1])):
			end(i) // apiKey, and the K of APIKey
		}
		if from < 0 {
			from = i
		}
	}
	end(len(letters))
	return words
}

// withoutSecrets copies a value of a request's body, with Removed for the texts,
// and lists of texts, of fields that sound secret, however deep. Numbers and
// objects stay: a JSON schema may describe a field named token.
func withoutSecrets(v any) any {
	return mapTexts(v, false, func(string) string { return Removed })
}

// bodySecrets are the texts of body fields that sound secret.
func bodySecrets(v any) []string {
	var found []string
	mapTexts(v, false, func(text string) string {
		if len(text) >= fewestSecret { // hiding a shorter one would only spoil messages
			found = append(found, text)
		}
		return text
	})
	return found
}

// mapTexts copies a value with its secret texts changed; secret says that the name
// above v sounds so.
func mapTexts(v any, secret bool, change func(string) string) any {
	switch v := v.(type) {
	case string:
		if secret {
			return change(v)
		}
	case map[string]any:
		if v == nil {
			return v
		}
		m := make(map[string]any, len(v))
		for name, x := range v {
			m[name] = mapTexts(x, isSecret(name), change)
		}
		return m
	case []any:
		s := make([]any, len(v))
		for i, x := range v {
			s[i] = mapTexts(x, secret, change)
		}
		return s
	}
	return v
}

// lacksSecret says that withoutSecrets took something out of v.
func lacksSecret(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, x := range v {
			if lacksSecret(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, lacksSecret)
	}
	return v == Removed
}
