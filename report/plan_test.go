package report

import (
	"reflect"
	"strings"
	"testing"
)

func TestPlanSchema(t *testing.T) {
	text, err := PlanDocument.Schema()
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "../docs/schema/plan.schema.json", text)
}

// Keys whose name does not say everything are described, and those that may be
// absent say when.
func TestPlanKeys(t *testing.T) {
	plain := "PlanTableRow.percentile PlanTableRow.requests PlanTableRow.rounded PlanPass.start PlanPass.per_miss PlanClaim.percentile PlanStatus.percentile"
	fields(reflect.TypeFor[Plan](), map[reflect.Type]bool{}, func(typ reflect.Type, f reflect.StructField) {
		json, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		name := typ.Name() + "." + json
		meaning, ok := planKeys()[name]
		switch {
		case !ok && !strings.Contains(" "+plain+" ", " "+name+" "):
			t.Errorf("%s is not described", name)
		case strings.Contains(options, "omitempty") && !strings.Contains(meaning, "Absent"):
			t.Errorf("%s may be absent and does not say when", name)
		}
	})
}

func TestPlanFormats(t *testing.T) {
	if err := PlanFormats.Check("xml"); err == nil {
		t.Error("xml is no format")
	}
	if err := PlanFormats.Check("json"); err != nil {
		t.Error(err)
	}
}
