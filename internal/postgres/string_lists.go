package postgres

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// registerLists makes a connection send and receive uuid[] and text[] as lists of strings in binary form, without an allocation for each
// element. pgx formats a list of strings for an error, because the elements are not UUIDs, before it sends a uuid[] as text.
func registerLists(_ context.Context, conn *pgx.Conn) error {
	for oid, codec := range map[uint32]stringList{
		pgtype.UUIDArrayOID: {element: pgtype.UUIDOID, encode: appendUUID, decode: appendUUIDText},
		pgtype.TextArrayOID: {element: pgtype.TextOID, encode: appendString, decode: appendText},
	} {
		t, ok := conn.TypeMap().TypeForOID(oid)
		if !ok {
			return fmt.Errorf("type %d is unknown", oid)
		}
		if codec.ArrayCodec, ok = t.Codec.(*pgtype.ArrayCodec); !ok {
			return fmt.Errorf("type %s is not an array", t.Name)
		}
		conn.TypeMap().RegisterType(&pgtype.Type{Name: t.Name, OID: oid, Codec: codec})
	}
	return nil
}

// stringList is the codec of an array. It encodes and decodes one-dimensional lists of strings, and leaves the rest to pgx.
type stringList struct {
	*pgtype.ArrayCodec
	element uint32 // OID
	encode  func(to []byte, s string) ([]byte, error)
	decode  func(to, element []byte) ([]byte, error)
}

// PlanEncode implements pgtype.Codec.
func (c stringList) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ok := value.([]string); ok && format == pgtype.BinaryFormatCode {
		return c
	}
	return c.ArrayCodec.PlanEncode(m, oid, format, value)
}

// PlanScan implements pgtype.Codec.
func (c stringList) PlanScan(m *pgtype.Map, oid uint32, format int16, target any) pgtype.ScanPlan {
	if _, ok := target.(*[]string); ok && format == pgtype.BinaryFormatCode {
		return c
	}
	return c.ArrayCodec.PlanScan(m, oid, format, target)
}

// Encode implements pgtype.EncodePlan. After an error, pgx sends the list as text.
func (c stringList) Encode(value any, buf []byte) ([]byte, error) {
	list, _ := value.([]string)
	if list == nil {
		return nil, nil
	}
	header := []uint32{1, 0, c.element, size(len(list)), 1} // dimensions, without null, type, length and first index
	if len(list) == 0 {
		header = []uint32{0, 0, c.element}
	}
	for _, n := range header {
		buf = binary.BigEndian.AppendUint32(buf, n)
	}
	for _, s := range list {
		begin := len(buf) + 4
		var err error
		if buf, err = c.encode(binary.BigEndian.AppendUint32(buf, 0), s); err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint32(buf[begin-4:], size(len(buf)-begin))
	}
	return buf, nil
}

// size returns a length as in an array. PostgreSQL accepts messages of up to 1 GiB.
func size(n int) uint32 { return uint32(min(max(n, 0), math.MaxInt32)) }

// Scan implements pgtype.ScanPlan. The strings share their memory.
func (c stringList) Scan(src []byte, target any) error {
	out, ok := target.(*[]string)
	if !ok {
		return errNotAList
	}
	if src == nil {
		*out = nil
		return nil
	}
	elements, err := elementsOf(src)
	if err != nil {
		return err
	}
	all := make([]byte, 0, 2*len(src)) // a UUID has 16 bytes, and 36 as text
	ends := make([]int, len(elements))
	for i, e := range elements {
		if all, err = c.decode(all, e); err != nil {
			return err
		}
		ends[i] = len(all)
	}
	text, begin := string(all), 0
	*out = make([]string, len(elements))
	for i, end := range ends {
		(*out)[i], begin = text[begin:end], end
	}
	return nil
}

var errNotAList = errors.New("not a list of strings")

// elementsOf returns the elements of an array in binary form.
func elementsOf(array []byte) ([][]byte, error) {
	const header = 5 * 4
	if len(array) < header {
		if len(array) == header-8 && binary.BigEndian.Uint32(array) == 0 {
			return nil, nil
		}
		return nil, errNotAList
	}
	if binary.BigEndian.Uint32(array) != 1 {
		return nil, errNotAList
	}
	count := int(binary.BigEndian.Uint32(array[12:]))
	if count > len(array)/4 {
		return nil, errNotAList
	}
	out, rest := make([][]byte, count), array[header:]
	for i := range out {
		if len(rest) < 4 {
			return nil, errNotAList
		}
		n := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(n) > uint64(len(rest)) { // null has the size -1
			return nil, errNotAList
		}
		out[i], rest = rest[:n], rest[n:]
	}
	return out, nil
}

func appendUUID(to []byte, s string) ([]byte, error) {
	if len(s) != 36 {
		return nil, errors.New("not the canonical form of a UUID")
	}
	id, err := uuid.Parse(s)
	return append(to, id[:]...), err
}

func appendUUIDText(to, element []byte) ([]byte, error) {
	if len(element) != 16 {
		return nil, errors.New("not a UUID")
	}
	begin := 0
	for _, end := range []int{4, 6, 8, 10, 16} {
		if begin > 0 {
			to = append(to, '-')
		}
		to = hex.AppendEncode(to, element[begin:end])
		begin = end
	}
	return to, nil
}

func appendString(to []byte, s string) ([]byte, error) { return append(to, s...), nil }

func appendText(to, element []byte) ([]byte, error) { return append(to, element...), nil }
