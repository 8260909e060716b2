package graph

import "slices"

// bound notes a decision that says of one symbol that it is not below a number, or not its lower bound itself: one guard holds what is known of
// its lower end. It is false for other decisions.
func (e *ShapeEnvironment) bound(difference polynomial, relation ShapeRelation) bool {
	name, coefficient, constant, ok := difference.singleSymbol()
	if !ok {
		return false
	}
	symbol := e.symbol(name)
	switch {
	case symbol == nil:
		return false
	case relation == RelationNotEqual && -constant*coefficient == symbol.Least:
		e.raise(symbol, symbol.Least+1)
	case relation == RelationLessEqual && coefficient < 0:
		e.raise(symbol, constant)
	case relation == RelationLess && coefficient < 0:
		e.raise(symbol, constant+1)
	default:
		return false
	}
	return true
}

// singleSymbol takes ±symbol + constant apart.
func (p polynomial) singleSymbol() (name string, coefficient, constant int64, ok bool) {
	for _, t := range p {
		switch {
		case len(t.atoms) == 0:
			constant = t.coefficient
		case len(t.atoms) == 1 && name == "" && t.atoms[0].Op == ExprSymbol && (t.coefficient == 1 || t.coefficient == -1):
			name, coefficient = t.atoms[0].Name, t.coefficient
		default:
			return "", 0, 0, false
		}
	}
	return name, coefficient, constant, name != ""
}

func (e *ShapeEnvironment) symbol(name string) *Symbol {
	for i := range e.symbols {
		if e.symbols[i].Name == name {
			return &e.symbols[i]
		}
	}
	return nil
}

// raise gives a symbol a higher lower bound, past the values that it is known not to have.
func (e *ShapeEnvironment) raise(symbol *Symbol, least int64) {
	atom := &Expr{Op: ExprSymbol, Name: symbol.Name}
	guard := ShapeGuard{Left: constant(least), Relation: RelationLessEqual, Right: atom, Origin: e.origin}
	for {
		excluded := ShapeGuard{Left: atom, Relation: RelationNotEqual, Right: constant(least)}.String()
		if !slices.ContainsFunc(e.guards, func(g ShapeGuard) bool { return g.String() == excluded }) {
			break
		}
		e.guards = slices.DeleteFunc(e.guards, func(g ShapeGuard) bool { return g.String() == excluded })
		least++
	}
	guard.Left = constant(least)
	symbol.Least = least
	known := slices.IndexFunc(e.guards, func(g ShapeGuard) bool { return g.isLowerBound(symbol.Name) })
	if known < 0 {
		e.guards = append(e.guards, guard)
		return
	}
	e.guards[known].Left = guard.Left
}

func (g ShapeGuard) isLowerBound(name string) bool {
	return g.Relation == RelationLessEqual && g.Left.Op == ExprConstant && g.Right.Op == ExprSymbol && g.Right.Name == name
}
