//go:build !linux

package conn

import (
	"errors"
	"fmt"
	"os"
	"time"
)

type socket struct{ room int }

var errSystem = fmt.Errorf("conn: XFRM is a part of Linux: %w", errors.ErrUnsupported)

func currentNS() (*os.File, error)                  { return nil, errSystem }
func openSocket(ns, _, _ int) (*socket, error)      { return nil, errSystem }
func (s *socket) close() error                      { return errSystem }
func (s *socket) deadline(t time.Time) error        { return errSystem }
func (s *socket) join(group int) error              { return errSystem }
func (s *socket) send(b []byte) error               { return errSystem }
func (s *socket) receive(b []byte) (n int, _ error) { return 0, errSystem }
