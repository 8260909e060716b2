package service

import (
	"github.com/cockroachdb/errors"

	"fusee/bytecode"
)

// lower compiles graphs that another capture made.
func (s *Service) lower(bytecode.Object) (*bytecode.Dict, error) {
	return nil, errors.New("lowering of graphs from another capture is not built in")
}
