// A schedule names its strategy and parameters, and its verifier checks their ranges: a typo is an error.
// RUN: tc-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{unknown attribute `cpu.contarct` in dialect `kernel`}}
module attributes {x = #kernel.cpu.contarct<tileN = 16>} {}
// -----
// expected-error @+1 {{duplicate or unknown struct parameter name: tilesN}}
module attributes {x = #kernel.cpu.contract<tilesN = 16>} {}
// -----
// expected-error @+1 {{tileN is a multiple of 16, not 8}}
module attributes {x = #kernel.cpu.contract<tileN = 8>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.cpu.scan<grain = 0>} {}
// -----
// expected-error @+1 {{block is at least 1, not 0}}
module attributes {x = #kernel.gpu.rows<block = 0>} {}
// -----
// expected-error @+1 {{tileN is a multiple of 16, not 0}}
module attributes {x = #kernel.cpu.skinny_gemm<tileN = 0>} {}
// -----
// expected-error @+1 {{tileM is at least 1, not 0}}
module attributes {x = #kernel.cpu.narrow_gemm<tileM = 0>} {}
// -----
// expected-error @+1 {{weights is at least -1, not -2}}
module attributes {x = #kernel.cpu.block_dot<weights = -2>} {}
// -----
// expected-error @+1 {{tiles is at least 1, not 0}}
module attributes {x = #kernel.cpu.winograd<tiles = 0>} {}
// -----
// expected-error @+1 {{tileH is at least 1, not 0}}
module attributes {x = #kernel.cpu.width_conv<tileH = 0>} {}
// -----
// expected-error @+1 {{pixels512 is at least 0, not -1}}
module attributes {x = #kernel.cpu.depthwise<pixels512 = -1>} {}
// -----
// expected-error @+1 {{tileS is at least 1, not 0}}
module attributes {x = #kernel.cpu.attention<tileS = 0>} {}
// -----
// expected-error @+1 {{prefetchKeys is at least 0, not -1}}
module attributes {x = #kernel.cpu.attention_rows<prefetchKeys = -1>} {}
// -----
// expected-error @+1 {{tileB is at least 1, not 0}}
module attributes {x = #kernel.cpu.rnn<tileB = 0>} {}
// -----
// expected-error @+1 {{block is at least 1, not 0}}
module attributes {x = #kernel.cpu.scatter<block = 0>} {}
// -----
// expected-error @+1 {{laneDims is at least 0, not -1}}
module attributes {x = #kernel.cpu.sort<laneDims = -1>} {}
// -----
// expected-error @+1 {{bluestein is at least 0, not -1}}
module attributes {x = #kernel.cpu.fft<bluestein = -1>} {}
// -----
// expected-error @+1 {{columns is at least 1, not 0}}
module attributes {x = #kernel.cpu.column_reduce<columns = 0>} {}
// -----
// expected-error @+1 {{rows is at least 1, not 0}}
module attributes {x = #kernel.cpu.transpose<rows = 0>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.cpu.window_reduce<grain = 0>} {}
// -----
// expected-error @+1 {{keep is at least -1, not -2}}
module attributes {x = #kernel.cpu.loops<keep = -2>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.gpu.mma<grain = 0>} {}
// -----
// expected-error @+1 {{block is a power of 2 that is at least 32, not 48}}
module attributes {x = #kernel.gpu.column_reduce<block = 48>} {}
// -----
// expected-error @+1 {{across is at most block, 32, not 64}}
module attributes {x = #kernel.gpu.column_reduce<block = 32, across = 64>} {}
// -----
// expected-error @+1 {{space is at least 0, not -1}}
module attributes {x = #kernel.gpu.flat<space = -1>} {}
// -----
// expected-error @+1 {{tileN is a multiple of 16, not 24}}
module attributes {x = #kernel.cpu.contract<tileN = 24>} {}
// -----
// expected-error @+1 {{tileT is a multiple of 16, not 20}}
module attributes {x = #kernel.cpu.attention<tileT = 20>} {}
// -----
// expected-error @+1 {{tileM is a power of 2 that is at least 16, not 8}}
module attributes {x = #kernel.gpu.mma<tileM = 8>} {}
// -----
// expected-error @+1 {{a warp takes multiples of 16 x 16 results, not a part of 16 x 128}}
module attributes {x = #kernel.gpu.mma<tileM = 16>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.gpu.attention<grain = 0>} {}
// -----
// expected-error @+1 {{tileS is a power of 2 that is at least 16, not 48}}
module attributes {x = #kernel.gpu.attention<tileS = 48>} {}
// -----
// expected-error @+1 {{a block has at most 32 warps of 16 queries, not 1024 queries}}
module attributes {x = #kernel.gpu.attention<tileT = 1024>} {}
// -----
// expected-error @+1 {{two warpgroups of 64 queries take turns, not those of 64}}
module attributes {x = #kernel.gpu.attention<tileT = 64, producers = true>} {}
// -----
// expected-error @+1 {{a warpgroup multiplies at most 256 keys at once, not 512}}
module attributes {x = #kernel.gpu.attention<tileS = 512>} {}
// -----
// expected-error @+1 {{grain is at least 1, not 0}}
module attributes {x = #kernel.gpu.transpose<grain = 0>} {}
// -----
// expected-error @+1 {{shared memory holds tiles of at most 64 x 64, not 128 x 128}}
module attributes {x = #kernel.gpu.transpose<tile = 128>} {}
// -----
// expected-error @+1 {{passes is 1 or 3, not 2}}
module attributes {x = #kernel.gpu.mma<passes = 2>} {}
// -----
// expected-error @+1 {{block is at least 1, not 0}}
module attributes {x = #kernel.gpu.scan<block = 0>} {}
// -----
// expected-error @+1 {{groups is a power of 2 that is at least 1, not 3}}
module attributes {x = #kernel.gpu.scatter<groups = 3>} {}
// -----
// expected-error @+1 {{with slices there are no ranges or groups; across * along, 64, divides block, 128, and what of it is left divides slices, 3}}
module attributes {x = #kernel.gpu.scatter<slices = 3, across = 16, along = 4>} {}
// -----
// expected-error @+1 {{block is at least 1, not 0}}
module attributes {x = #kernel.gpu.sort<block = 0>} {}
// -----
// expected-error @+1 {{items is a power of 2 that is at least 0, not 3}}
module attributes {x = #kernel.gpu.sort<items = 3, across = 32>} {}
// -----
// expected-error @+1 {{block is a multiple of across, 256, not 128}}
module attributes {x = #kernel.gpu.sort<items = 8, across = 256>} {}
// -----
// expected-error @+1 {{words move between the 32 lanes of whole warps; block is 16}}
module attributes {x = #kernel.gpu.sort<block = 16, items = 8, across = 16>} {}
// -----
// expected-error @+1 {{threads that sort together hold two items at least}}
module attributes {x = #kernel.gpu.sort<items = 1, across = 32>} {}
// -----
// expected-error @+1 {{threads that count have no teams, merges or limits}}
module attributes {x = #kernel.gpu.sort<merges = 2>} {}
// -----
// expected-error @+1 {{parts want a limit}}
module attributes {x = #kernel.gpu.sort<items = 8, across = 32, parts = 2>} {}
