package inflate

import (
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
)

// samples are data of several kinds.
func samples(t testing.TB) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 70_000)
	for i := range noise {
		noise[i] = byte(random.Uint32())
	}
	skewed := make([]byte, 65536)
	for i := range skewed {
		skewed[i] = byte(random.ExpFloat64() * 9)
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	list := [][]byte{{}, {1}, bytes.Repeat([]byte{0}, 65536), bytes.Repeat([]byte("abc"), 20_000), noise, skewed, []byte("Stencil Stencil")}
	for i := 0; i < 1<<19 && i+65536 <= len(program); i += 65536 {
		list = append(list, program[i:i+65536])
	}
	return list
}

func deflated(t testing.TB, data []byte, level int) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, level)
	if err == nil {
		_, err = w.Write(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Close()
	return b.Bytes()
}

func TestDataIsThatOfTheStandardLibrary(t *testing.T) {
	for i, data := range samples(t) {
		for level := flate.HuffmanOnly; level <= 9; level++ {
			compressed := append(deflated(t, data, level), "trailing bytes that are not read"...)
			for _, spare := range []int{0, 1, 300} {
				got := make([]byte, len(data)+spare)
				n, err := Raw(compressed, got, len(got))
				if err != nil || !bytes.Equal(got[:n], data) {
					t.Fatalf("sample %d, level %d: %d bytes of %d, %v", i, level, n, len(data), err)
				}
			}
			if len(data) == 0 {
				continue
			}
			if _, err := Raw(compressed, nil, len(data)-1); !errors.Is(err, ErrTooLong) {
				t.Fatalf("sample %d, level %d, in a buffer that is too short: %v", i, level, err)
			}
		}
	}
}

func TestTruncatedDataIsRejectedAtEveryByte(t *testing.T) {
	compressed := deflated(t, samples(t)[7][:5000], 6)
	dst := make([]byte, 5000)
	for n := range compressed {
		if _, err := Raw(compressed[:n], dst, len(dst)); err == nil {
			t.Fatalf("the first %d of %d bytes are accepted", n, len(compressed))
		}
	}
}

func TestZlibChecksTheChecksum(t *testing.T) {
	data := samples(t)[7]
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = w.Write(data)
	w.Close()
	for _, length := range []int{len(data), 100} {
		dst := make([]byte, length)
		n, err := Zlib(b.Bytes(), dst, len(data))
		if err != nil || n != len(data) || !bytes.Equal(dst, data[:length]) {
			t.Fatalf("%d bytes, %v", n, err)
		}
	}
	damaged := bytes.Clone(b.Bytes())
	damaged[len(damaged)-1] ^= 1
	if _, err := Zlib(damaged, make([]byte, len(data)), len(data)); !errors.Is(err, ErrChecksum) {
		t.Fatalf("a wrong checksum: %v", err)
	}
	if _, err := Zlib(b.Bytes()[:b.Len()-1], make([]byte, len(data)), len(data)); !errors.Is(err, ErrTruncated) {
		t.Fatalf("a cut checksum: %v", err)
	}
}

// FuzzInflate compares with the standard library: either both reject, or both return the same data.
func FuzzInflate(f *testing.F) {
	for _, data := range samples(f)[:7] {
		f.Add(deflated(f, data[:min(len(data), 3000)], 6))
		f.Add(deflated(f, data[:min(len(data), 3000)], 0))
	}
	f.Fuzz(func(t *testing.T, compressed []byte) {
		const limit = 1 << 16
		got := make([]byte, limit)
		n, err := Raw(compressed, got, len(got))
		want, problem := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(compressed)), limit+1))
		if len(want) > limit {
			if err == nil {
				t.Fatalf("%d bytes of data that is longer", n)
			}
			return
		}
		if (err == nil) != (problem == nil) {
			t.Fatalf("Raw: %v, the standard library: %v", err, problem)
		}
		if err == nil && !bytes.Equal(got[:n], want) {
			t.Fatalf("other data than that of the standard library")
		}
	})
}

func BenchmarkRaw(b *testing.B) {
	var list [][]byte
	for _, data := range samples(b)[7:] {
		list = append(list, deflated(b, data, 6))
	}
	dst := make([]byte, 65536)
	b.SetBytes(int64(len(list) * 65536))
	for b.Loop() {
		for _, compressed := range list {
			if _, err := Raw(compressed, dst, len(dst)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkStandardLibrary(b *testing.B) {
	var list [][]byte
	for _, data := range samples(b)[7:] {
		list = append(list, deflated(b, data, 6))
	}
	dst := make([]byte, 65536)
	r := flate.NewReader(bytes.NewReader(nil))
	b.SetBytes(int64(len(list) * 65536))
	for b.Loop() {
		for _, compressed := range list {
			if err := r.(flate.Resetter).Reset(bytes.NewReader(compressed), nil); err != nil {
				b.Fatal(err)
			}
			if _, err := io.ReadFull(r, dst); err != nil {
				b.Fatal(err)
			}
		}
	}
}
