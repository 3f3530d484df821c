//go:build !unix

package main

func (b *bench) alone() error { return nil }
