// Package child compiles and tests policies in a process of its own, because nothing can interrupt or bound OPA's compiler within one.
//
// A Runner starts the program of its own process again, with Argument as the only argument, and that calls Main. The child has no environment, a limit
// of its memory, a lower priority, and one processor; it ends with its parent. It receives one policy at a time, on its standard input, and answers on
// its standard output. If it dies or does not answer in time, the policy that it was working on is the cause; the Runner kills it, and starts another
// for the next policy. A child stays for policies that follow at once, so that many policies, as after a start, need one.
//
// What passed here is compiled again by the parent, with the same inputs: it needs no more than the child did.
package child
