package graph

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"fusee/internal/slice"
)

// Derivative says how gradients flow back through an operator. Instead, when it is not empty, is a call that stands for the operator
// where gradients are wanted, since it also gives what the backward formulas read; its own operators have derivatives of their own.
// Written, for views, is what the tensor behind a view holds once `value` was stored through it; of views that are made several at once it is
// the one at position `piece`, and `pieces` are their lengths. The formulas are read by package autograd.
type Derivative struct {
	Instead   string
	Written   string
	Gradients []GradientFormula
	// Again, where there are any, are the formulas in operators that can be differentiated again, which the others cannot.
	Again []GradientFormula
	// Once says that the formulas cannot be differentiated again.
	Once bool
}

// GradientFormula gives the gradients of one or several parameters: of several, the formula's results in order.
type GradientFormula struct {
	Parameters []string
	Formula    string
	// LeastNorm stands for the formula in a PyTorch that takes gradients of least norm at bounds and ties; "" where that is the same.
	LeastNorm string
}

// Under is the formula under a state.
func (f GradientFormula) Under(state State) string {
	if state.LeastNorm && f.LeastNorm != "" {
		return f.LeastNorm
	}
	return f.Formula
}

// derivativeRow is the written form: the operator without "aten.", what stands for it, and "parameter, parameter: formula" for each formula.
type derivativeRow struct {
	target, instead, written string
	gradients, again         []string
	ties                     []string // in the same order
	once                     bool
}

func gradients(target string, formulas ...string) derivativeRow {
	return derivativeRow{target: target, gradients: formulas}
}

// writtenBy adds the formula of a write through a view.
func (r derivativeRow) writtenBy(formula string) derivativeRow {
	r.written = formula
	return r
}

// leastNorm adds the formulas of a PyTorch that takes gradients of least norm at bounds and ties, one for each of the others.
func (r derivativeRow) leastNorm(formulas ...string) derivativeRow {
	r.ties = formulas
	return r
}

// notAgain marks a row whose formulas cannot be differentiated again.
func (r derivativeRow) notAgain() derivativeRow {
	r.once = true
	return r
}

// differentiableBy adds the formulas that can be differentiated again.
func (r derivativeRow) differentiableBy(formulas ...string) derivativeRow {
	r.again = formulas
	return r
}

func instead(target, call string) derivativeRow { return derivativeRow{target: target, instead: call} }

var derivatives = sync.OnceValue(func() map[string]*Derivative {
	table := map[string]*Derivative{}
	for _, rows := range [][]derivativeRow{
		unaryDerivatives(), binaryDerivatives(), conditionalDerivatives(), activationDerivatives(), secondDerivatives(), viewDerivatives(), reductionDerivatives(),
		matrixDerivatives(), normalisationDerivatives(), indexDerivatives(), shapeDerivatives(), lossDerivatives(), poolingDerivatives(),
	} {
		for _, r := range rows {
			table[r.fullTarget()] = r.parse()
		}
	}
	return table
})

func (r derivativeRow) fullTarget() string {
	if strings.Contains(r.target, ".") {
		return "aten." + r.target
	}
	return "aten." + r.target + ".default"
}

func (r derivativeRow) parse() *Derivative {
	derivative := &Derivative{Instead: r.instead, Written: r.written, Once: r.once, Gradients: parseFormulas(r.gradients), Again: parseFormulas(r.again)}
	for i, formula := range r.ties {
		derivative.Gradients[i].LeastNorm = formula
	}
	return derivative
}

func parseFormulas(texts []string) []GradientFormula {
	return slice.Map(texts, func(text string) GradientFormula {
		names, formula, _ := strings.Cut(text, ": ")
		return GradientFormula{Parameters: strings.Split(names, ", "), Formula: formula}
	})
}

// DerivativeOf gives the derivative of an operator by its target, "aten.mul.Tensor".
func DerivativeOf(target string) (*Derivative, bool) {
	derivative, ok := derivatives()[target]
	return derivative, ok
}

// DifferentiableTargets lists the operators that have a derivative, sorted.
func DifferentiableTargets() []string { return slices.Sorted(maps.Keys(derivatives())) }

// OfAllResults says whether the formulas read the gradients of further results, not only that of the first one.
func (d *Derivative) OfAllResults() bool {
	return slices.ContainsFunc(d.Gradients, func(g GradientFormula) bool { return strings.Contains(g.Formula, "grads") })
}

// sizesOnly matches calls in formulas that read no more of tensors than their sizes and types.
var sizesOnly = regexp.MustCompile(`\b(count|end_of|filled|interleaved_summed|pieces|repeats_summed|shaped|sizes|spread|start_of|zero)\([^()]*\)`)

// KeepsNothing says whether autograd keeps no tensor of an operator for backward, which may run again then.
func KeepsNothing(target string) bool {
	op, known := LookUp(target)
	derivative, differentiable := DerivativeOf(target)
	if !known || !differentiable || derivative.Instead != "" {
		return false
	}
	kept := []string{"result", "results"}
	for _, p := range op.Schema.Parameters {
		if p.Kind == KindTensor {
			kept = append(kept, p.Name)
		}
	}
	return !slices.ContainsFunc(derivative.Gradients, func(g GradientFormula) bool { return formulaReads(g.Formula, kept) })
}

// formulaReads says whether a formula reads one of the tensors of these names.
func formulaReads(formula string, names []string) bool {
	for sizesOnly.MatchString(formula) {
		formula = sizesOnly.ReplaceAllString(formula, "grad")
	}
	words := strings.FieldsFunc(formula, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return slices.ContainsFunc(words, func(word string) bool { return slices.Contains(names, word) })
}

// Of finds the formula for a parameter, one that can be differentiated again where there is one and it is asked for.
func (d *Derivative) Of(parameter string, again bool) (GradientFormula, bool) {
	formulas := d.Gradients
	if again && len(d.Again) > 0 {
		formulas = d.Again
	}
	return slice.Find(formulas, func(g GradientFormula) bool { return slices.Contains(g.Parameters, parameter) })
}
