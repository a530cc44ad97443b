// A schedule names its strategy and parameters, and its verifier checks their ranges: a typo is an error.
// RUN: tc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{unknown attribute `cpu.contarct` in dialect `kernel`}}
module attributes {x = #kernel.cpu.contarct<tileN = 16>} {}
// -----
// expected-error @+1 {{duplicate or unknown struct parameter name: tilesN}}
module attributes {x = #kernel.cpu.contract<tilesN = 16>} {}
// -----
// expected-error @+1 {{tileN is at least 16, not 8}}
module attributes {x = #kernel.cpu.contract<tileN = 8>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.cpu.scan<grain = 0>} {}
// -----
// expected-error @+1 {{block is at least 1, not 0}}
module attributes {x = #kernel.gpu.rows<block = 0>} {}
