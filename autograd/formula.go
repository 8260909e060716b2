package autograd

import (
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/cockroachdb/errors"

	"fusee/graph"
)

// syntax is a node of a parsed formula. Kind is "constant", "name", "list", "call" (Text names what is called), "index", "-" (of one operand) or
// an infix operator.
type syntax struct {
	kind     string
	text     string
	constant graph.Value
	items    []*syntax
	keywords map[string]*syntax
}

// parseFormula reads the formula of a derivative.
func parseFormula(text string) (*syntax, error) {
	p := &formulaParser{tokens: graph.Tokens(text, formulaTokenLength)}
	parsed, err := p.infix(0)
	if err == nil && len(p.tokens) > 0 {
		err = errors.Newf("unexpected %q", p.tokens[0])
	}
	return parsed, errors.Wrapf(err, "formula %q", text)
}

// formulaTokenLength keeps the exponent of a number and the quotes of a text.
func formulaTokenLength(text string) int {
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || r == '.' }
	if text[0] == '\'' {
		return strings.IndexByte(text[1:], '\'') + 2
	}
	word := strings.IndexFunc(text, func(r rune) bool { return !isWord(r) })
	switch {
	case word < 0:
		return len(text)
	case word > 0 && unicode.IsDigit(rune(text[0])) && text[word-1] == 'e' && text[word] == '-':
		return word + 1 + formulaTokenLength(text[word+1:])
	case word > 0:
		return word
	case len(text) > 1 && strings.Contains(" == != <= >= ", " "+text[:2]+" "):
		return 2
	}
	return 1
}

type formulaParser struct{ tokens []string }

func (p *formulaParser) peek() string {
	if len(p.tokens) == 0 {
		return ""
	}
	return p.tokens[0]
}

func (p *formulaParser) next() string {
	token := p.peek()
	if token != "" {
		p.tokens = p.tokens[1:]
	}
	return token
}

func (p *formulaParser) expect(token string) error {
	if found := p.next(); found != token {
		return errors.Newf("%q instead of %q", found, token)
	}
	return nil
}

// infixLevel is how tightly an operator binds, as in Python; false for other tokens.
func infixLevel(token string) (int, bool) {
	levels := []string{"== != < <= > >=", "|", "&", "+ -", "* /"}
	level := slices.IndexFunc(levels, func(tokens string) bool { return slices.Contains(strings.Fields(tokens), token) })
	return level, level >= 0
}

const tightest = 5

func (p *formulaParser) infix(level int) (*syntax, error) {
	if level == tightest {
		return p.unary()
	}
	left, err := p.infix(level + 1)
	for err == nil {
		found, isInfix := infixLevel(p.peek())
		if !isInfix || found != level {
			return left, nil
		}
		operator := p.next()
		var right *syntax
		right, err = p.infix(level + 1)
		left = &syntax{kind: operator, items: []*syntax{left, right}}
	}
	return nil, err
}

func (p *formulaParser) unary() (*syntax, error) {
	if p.peek() != "-" {
		return p.indexed()
	}
	p.next()
	operand, err := p.unary()
	return &syntax{kind: "-", items: []*syntax{operand}}, err
}

func (p *formulaParser) indexed() (*syntax, error) {
	value, err := p.primary()
	for err == nil && p.peek() == "[" && value.kind != "constant" {
		p.next()
		var index *syntax
		if index, err = p.infix(0); err == nil {
			err = p.expect("]")
		}
		value = &syntax{kind: "index", items: []*syntax{value, index}}
	}
	return value, err
}

func (p *formulaParser) primary() (*syntax, error) {
	token := p.next()
	switch {
	case token == "(":
		value, err := p.infix(0)
		if err != nil {
			return nil, err
		}
		return value, p.expect(")")
	case token == "[":
		list := &syntax{kind: "list"}
		return list, p.items(list, "]")
	case token == "":
		return nil, errors.New("the formula ends early")
	}
	if constant, ok := formulaConstant(token); ok {
		return &syntax{kind: "constant", constant: constant}, nil
	}
	if p.peek() != "(" {
		return &syntax{kind: "name", text: token}, nil
	}
	p.next()
	call := &syntax{kind: "call", text: token, keywords: map[string]*syntax{}}
	return call, p.items(call, ")")
}

// items reads what stands between brackets; name=value is a keyword argument.
func (p *formulaParser) items(into *syntax, end string) error {
	for p.peek() != end {
		name := ""
		if len(p.tokens) > 1 && p.tokens[1] == "=" {
			name = p.next()
			p.next()
		}
		item, err := p.infix(0)
		if err != nil {
			return err
		}
		if name != "" && into.keywords != nil {
			into.keywords[name] = item
		} else {
			into.items = append(into.items, item)
		}
		if p.peek() == "," {
			p.next()
		} else if p.peek() != end {
			return errors.Newf("unexpected %q", p.peek())
		}
	}
	return p.expect(end)
}

func formulaConstant(token string) (graph.Value, bool) {
	switch token {
	case "None":
		return nil, true
	case "True", "False":
		return token == "True", true
	}
	if token[0] == '\'' {
		return strings.Trim(token, "'"), true
	}
	if n, err := strconv.ParseInt(token, 10, 64); err == nil {
		return n, true
	}
	if f, err := strconv.ParseFloat(token, 64); err == nil && unicode.IsDigit(rune(token[0])) {
		return f, true
	}
	return nil, false
}
