package main

func (b *bench) client() error { return nil }
