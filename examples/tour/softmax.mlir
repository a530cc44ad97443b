// softmax(x + b) of each row, as docs/tour.md follows it: what the phase prim makes of an Add and a Softmax.
func.func @main(%x: tensor<64x128xf32> {tc.name = "x"}, %b: tensor<128xf32> {tc.name = "b"}) -> (tensor<64x128xf32> {tc.name = "y"}) {
  %bias = prim.broadcast %b [1] : tensor<128xf32> -> tensor<64x128xf32>
  %z = prim.add %x, %bias : tensor<64x128xf32>
  %max = prim.reduce max %z [1] : tensor<64x128xf32> -> tensor<64xf32>
  %maxima = prim.broadcast %max [0] : tensor<64xf32> -> tensor<64x128xf32>
  %below = prim.sub %z, %maxima : tensor<64x128xf32>
  %e = prim.exp %below : tensor<64x128xf32>
  %sum = prim.reduce sum %e [1] : tensor<64x128xf32> -> tensor<64xf32>
  %sums = prim.broadcast %sum [0] : tensor<64xf32> -> tensor<64x128xf32>
  %y = prim.div %e, %sums : tensor<64x128xf32>
  return %y : tensor<64x128xf32>
}
