package report

import (
	"fermata/capacity"
	"fermata/compare"
	"fermata/internal/schema"
	"fermata/metrics"
)

// SchemaID names the published schema of result.json.
const SchemaID = "urn:fermata:result:1"

// A Document is a kind of JSON that people's scripts read. Its schema is derived
// from its Go type, so that the two cannot differ.
type Document struct {
	derive func() (*schema.Schema, error)
}

// The documents, each published as docs/schema/NAME.schema.json: what JSON writes
// (one result or an array of them), and WritePlan, WriteStudy, WriteSweep, WriteTuning, WriteSelftest,
// WriteComparison and WriteCapacity (of one search) in the format json.
var (
	ResultDocument     = documentOf[metrics.Result](resultOptions)
	PlanDocument       = documentOf[Plan](planOptions)
	StudyDocument      = documentOf[Study](studyOptions)
	SelftestDocument   = documentOf[Selftest](selftestOptions)
	SweepDocument      = documentOf[Sweep](sweepOptions)
	TuneDocument       = documentOf[Tuning](tuneOptions)
	ComparisonDocument = documentOf[compare.Comparison](comparisonOptions)
	CapacityDocument   = documentOf[capacity.Result](capacityOptions)
)

// documentOf asks for the options, which are large, only once a schema is wanted:
// most commands start without one.
func documentOf[T any](options func() schema.Options) Document {
	return Document{func() (*schema.Schema, error) { return schema.Of[T](options()) }}
}

// Schema is the JSON schema, as it is published.
func (d Document) Schema() ([]byte, error) {
	s, err := d.derive()
	if err != nil {
		return nil, err
	}
	return s.JSON()
}

// Validate checks a document against the schema.
func (d Document) Validate(document []byte) error {
	s, err := d.derive()
	if err != nil {
		return err
	}
	return s.Validate(document)
}

func resultOptions() schema.Options {
	o := schema.Options{
		ID: SchemaID, Title: "What Fermata claims from one recording, or an array of such results",
		Types: map[string]string{}, Keys: map[string]string{}, Enum: enums(), OrArray: true,
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
	return o
}
