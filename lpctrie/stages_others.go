//go:build purego || !amd64

package lpctrie

func hasAsm() bool { return false }

func wordStage(*index, []uint32, []uint32) {}

func positionStage(*index, []uint32, []uint32) {}

func directStage(*index, []uint32, []uint32) {}

func entryStage(*index, []uint32) (missed, deep int) { return 0, 0 }
