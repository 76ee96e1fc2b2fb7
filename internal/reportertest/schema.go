package reportertest

import (
	"bytes"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/perfagent/perfagent/internal/testenv"
)

// SchemaFile is the path of the report file's schema in this repository.
const SchemaFile = "docs/report.schema.json"

var compiled struct {
	once   sync.Once
	schema *jsonschema.Schema
	err    error
}

// Schema returns the schema of the report file.
func Schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	path := testenv.Repository(t, SchemaFile)
	compiled.once.Do(func() { compiled.schema, compiled.err = compile(path) })
	if compiled.err != nil {
		t.Fatal(compiled.err)
	}

	return compiled.schema
}

func compile(path string) (*jsonschema.Schema, error) {
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	return c.Compile(path)
}

// Validate checks the bytes of a report against the schema.
func Validate(t testing.TB, data []byte) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if err := Schema(t).Validate(doc); err != nil {
		t.Errorf("report does not match %s: %v", SchemaFile, err)
	}
}
