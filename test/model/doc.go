// Package model explores the quota ledger exhaustively: for a few pods, every order in which replicas read, list and
// swap, the API server creates, denies and loses, pods end, requests time out, and writes land late.
//
// A ledger's content and the result of a list are the ledger's own code (ledger.State, ledger.Tally); the model adds
// the steps between the calls, of which each may be the last of its process. Variants leave out one of the rules that
// the algorithm rests on; for each the model has to find the step by which a quota is passed.
package model
