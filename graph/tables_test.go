package graph

import (
	"fmt"
	"strings"
	"testing"
)

// TestSchemasAreTorchs compares every row with the schema that torch registers under the same name.
func TestSchemasAreTorchs(t *testing.T) {
	theirs := map[string]*Schema{}
	for _, text := range loadOracle(t).Schemas {
		if schema, err := ParseSchema(text); err == nil {
			theirs[schema.Target()] = schema
		}
	}
	for _, target := range Targets() {
		op, _ := LookUp(target)
		if strings.HasPrefix(target, ownModule) {
			continue
		}
		schema, ok := theirs[target]
		if !ok {
			t.Errorf("torch has no %s", target)
			continue
		}
		if got, want := describeSchema(op.Schema), describeSchema(schema); got != want {
			t.Errorf("%s\n  here  %s\n  torch %s", target, got, want)
		}
	}
}

func describeSchema(s *Schema) string {
	var b strings.Builder
	for _, p := range s.Parameters {
		fmt.Fprintf(&b, "%s kind=%d list=%v/%d optional=%v/%v keyword=%v default=%v/%v mutated=%v; ", p.Name, p.Kind, p.List, p.Length,
			p.Optional, p.OptionalItems, p.KeywordOnly, p.HasDefault, FormatValue(p.Default), p.Mutated)
	}
	return b.String() + strings.ReplaceAll(strings.ReplaceAll(s.Returns, "(a!)", ""), "(a)", "")
}

// TestFormulasParse evaluates nothing: it only makes sure that every formula is one.
func TestFormulasParse(t *testing.T) {
	for _, target := range Targets() {
		op, _ := LookUp(target)
		if op.body.text == "" {
			continue
		}
		_, err := parseExpression(op.body.text, func(name string) (*Expression, bool) {
			known := op.Schema.Position(name) >= 0 || name == "pi" || name == "inf" || name == "nan"
			return &Expression{Op: "operand"}, known
		})
		if err != nil {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestOperatorTable keeps testdata/operators.txt, which lists the table as it is, current: one line an operator with its kind, the
// element types it takes and its formula.
func TestOperatorTable(t *testing.T) {
	var b strings.Builder
	for _, target := range Targets() {
		op, _ := LookUp(target)
		fmt.Fprintf(&b, "%s %s", target, op.Kind)
		if op.Accepts != "" {
			fmt.Fprintf(&b, " on %s", op.Accepts)
		}
		if op.body.text != "" && !op.InPlace {
			fmt.Fprintf(&b, ": %s", op.body.text)
		}
		b.WriteString("\n")
	}
	checkGolden(t, "operators.txt", b.String())
}
