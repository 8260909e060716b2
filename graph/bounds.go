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
	rest, constant := p.parts()
	if len(rest) != 1 || !rest[0].isSymbol() {
		return "", 0, 0, false
	}
	return rest[0].atoms[0].Name, rest[0].coefficient, constant, true
}

// isSymbol says whether the term is a symbol or the negative of one.
func (t term) isSymbol() bool {
	return len(t.atoms) == 1 && t.atoms[0].Op == ExprSymbol && (t.coefficient == 1 || t.coefficient == -1)
}

// symbol is the symbol of a name, nil where the environment has none.
func (e *ShapeEnvironment) symbol(name string) *Symbol {
	if e == nil {
		return nil
	}
	if i := slices.IndexFunc(e.symbols, func(s Symbol) bool { return s.Name == name }); i >= 0 {
		return &e.symbols[i]
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
