package workload

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// attachedMax bounds a file that a message holds: servers take less.
const attachedMax = 64 << 20

// attachable are the kinds of files that a message may hold, by their ending.
var attachable = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".bmp": "image/bmp",
	".wav": "audio/wav", ".mp3": "audio/mpeg", ".mp4": "video/mp4",
}

// attachment is where a message refers to a file beside the data set, as
// {"url": "file:pictures/a.png"}. file:// with its slashes is a URL that some
// servers open themselves, and goes out as it is. Inside a text the quotes would
// be escaped.
var attachment = regexp.MustCompile(`"url"\s*:\s*"file:(?:[^"\\]|\\.)*"`)

// attachments calls each for every file that a message refers to; what it returns
// stands in the file's place, in a copy.
func attachments(m json.RawMessage, each func(path string) (string, error)) (json.RawMessage, error) {
	if !bytes.Contains(m, []byte(`"file:`)) {
		return m, nil
	}
	var wrong error
	out := attachment.ReplaceAllFunc(m, func(found []byte) []byte {
		var part struct {
			URL string `json:"url"`
		}
		err := json.Unmarshal(slices.Concat([]byte("{"), found, []byte("}")), &part)
		path := strings.TrimPrefix(part.URL, "file:")
		if err != nil || strings.HasPrefix(path, "//") {
			return found
		}
		url, err := each(path)
		if err != nil {
			wrong = errors.Join(wrong, err)
			return found
		}
		text, err := json.Marshal(url)
		if err != nil {
			wrong = errors.Join(wrong, err)
		}
		return append([]byte(`"url":`), text...)
	})
	return out, wrong
}

// checkAttached finds files that cannot be sent, before anything is.
func (d *dataset) checkAttached(messages []json.RawMessage) error {
	for i, m := range messages {
		_, err := attachments(m, func(path string) (string, error) {
			_, err := d.attached(path)
			return "", err
		})
		if err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	return nil
}

// attach puts the files that messages refer to into them, as data URLs.
func (d *dataset) attach(messages []json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	for i, m := range messages {
		whole, err := attachments(m, func(path string) (string, error) {
			at, err := d.attached(path)
			if err != nil {
				return "", err
			}
			data, err := os.ReadFile(at)
			if err != nil {
				return "", err
			}
			return "data:" + kindOf(path) + ";base64," + base64.StdEncoding.EncodeToString(data), nil
		})
		if err != nil {
			return nil, fmt.Errorf("reading what %s refers to: %w", d.name, err)
		}
		if out == nil {
			out = slices.Clone(messages)
		}
		out[i] = whole
	}
	return out, nil
}

// attached is where a file is that a message refers to, seen from the data set.
func (d *dataset) attached(path string) (string, error) {
	if kindOf(path) == "" {
		return "", fmt.Errorf("file:%s is of no kind that is known: it must end in .png, .jpg, .gif, .webp, .bmp, .wav, .mp3 or .mp4", path)
	}
	at := filepath.FromSlash(path)
	if !filepath.IsAbs(at) {
		at = filepath.Join(filepath.Dir(d.name), at)
	}
	switch info, err := os.Stat(at); {
	case err != nil:
		return "", fmt.Errorf("file:%s: %w", path, err)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("file:%s is no file", path)
	case info.Size() > attachedMax:
		return "", fmt.Errorf("file:%s is longer than %d MiB", path, attachedMax>>20)
	}
	return at, nil
}

func kindOf(path string) string { return attachable[strings.ToLower(filepath.Ext(path))] }
