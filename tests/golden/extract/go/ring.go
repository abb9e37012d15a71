// Package ring keeps the last n values.
package ring

import (
	"context"
	"fmt"
	m "math"

	_ "example.com/drivers/lite"
)

import "errors"

// BUG(rsc): the zero Ring panics.
const DefaultSize = 16

const (
	StateIdle State = iota
	StateBusy
	hidden = "FIXME: a string"
)

var ErrFull = errors.New("ring: full")

var (
	registry, Größen = map[string]Codec{}, 3
)

type (
	Pair[A, B any] struct{ a A }
	Namer interface{ Name() string }
	ID = string
)

type State int

type Bytes = []byte

// Codec turns values into bytes.
type Codec interface {
	fmt.Stringer
	Encoder
	Encode(ctx context.Context, v any) (Bytes, error)
}

type Ring[T comparable] struct {
	*Base
	sync.Mutex
	items []T
	codec Codec // HACK: nil means JSON
}

func New[T comparable](size int, opts ...Option) (*Ring[T], error) {
	r := &Ring[T]{items: make([]T, 0, size)}
	check := func(n int) bool { return n > 0 }
	if !check(size) {
		return nil, ErrFull
	}
	return r, apply[T](r, opts)
}

func (r *Ring[T]) Push(
	ctx context.Context, // may be done
	v T,
) (err error) {
	defer r.Unlock()
	fmt.Println(m.Floor(1.5), Point{X: 1}, []Codec{}, unsafe.Pointer(nil))
	return r.codec.Encode(ctx, v)
}

func (State) String() string { return "idle" }

/*
XXX: two lines below, one marker
FIXME later: not followed by a colon at once, but at the start
a BUG in the middle is prose
*/
func main() {}
