package report

import (
	"fermata/internal/schema"
	"fermata/metrics"
)

// SchemaID names the published schema of result.json.
const SchemaID = "urn:fermata:result:1"

// Schema is the JSON schema of what JSON writes, one result or an array of
// them, derived from metrics.Result; published as docs/schema/result.schema.json.
func Schema() ([]byte, error) {
	s, err := resultSchema()
	if err != nil {
		return nil, err
	}
	return s.JSON()
}

// Validate checks a result.json against Schema.
func Validate(document []byte) error {
	s, err := resultSchema()
	if err != nil {
		return err
	}
	return s.Validate(document)
}

func resultSchema() (*schema.Schema, error) {
	o := schema.Options{
		ID: SchemaID, Title: "What Fermata claims from one recording, or an array of such results",
		Types: map[string]string{}, Keys: map[string]string{}, Enum: enums, OrArray: true,
	}
	for _, t := range typeMeanings {
		o.Types[t.name] = t.meaning
	}
	for _, k := range keys {
		description := k.meaning
		if k.unit == ofMetric {
			description += " In the metric's unit."
		} else if k.unit != "" {
			description += " Unit: " + k.unit + "."
		}
		if k.absent != "" {
			description += " Absent where " + k.absent + "."
		}
		o.Keys[k.name] = description
	}
	return schema.Of[metrics.Result](o)
}
