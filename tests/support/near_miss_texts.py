"""Small networks that rewrites take, one form each, in ONNX's text form: what near misses of them are drawn from.

Constants are those of `chain_texts`: their letter says what they hold, the numbers behind it their shape.
"""

from support.chain_texts import CONV, TEXTS

_ROWS = "f = Reshape (x, i_0_16_16)\n "
_LENGTH = "f = Reshape (x, i_0_16_16)\n l = MatMul (f, w_16_8)\n "
_FRONT = "c = Conv (x, w_4_4_1_1, b_4)\n "
_IMAGE = f"{_FRONT}k = Relu (c)\n "
FORMS: dict[str, str] = {
    # lengths and norms
    "length by roots": f"{_FRONT}q = Mul (c, c)\n s = ReduceSum (q, i_1)\n r = Sqrt (s)\n y = Div (c, r)",
    "length of rows": f"{_LENGTH}n = ReduceL2 <axes = [2]> (l)\n m = Max (n, zero)\n y = Div (l, m)",
    "length of rows, expanded": f"{_LENGTH}n = ReduceL2 <axes = [-1]> (l)\n m = Clip (n, zero)\n e = Expand (m, i_1_16_8)\n d = Div (l, e)\n y = MatMul (d, w_8_3)",
    "length of a vector": "g = GlobalAveragePool (x)\n f = Flatten (g)\n a = Gemm (f, w_4_6, b_6)\n n = ReduceSumSquare <axes = [1]> (a)\n s = Sqrt (n)\n y = Div (a, s)",
    "norm of channels": f"{_FRONT}m = ReduceMean <axes = [1]> (c)\n d = Sub (c, m)\n q = Pow (d, two)\n v = ReduceMean <axes = [1]> (q)\n e = Add (v, tiny)\n s = Sqrt (e)\n n = Div (d, s)\n g = Mul (n, p_4_1_1)\n y = Add (g, b_4_1_1)",
    "norm, transposed": f"{_FRONT}t = Transpose <perm = [0,2,3,1]> (c)\n n = LayerNormalization <axis = -1, epsilon = 0.001> (t, p_4, b_4)\n s = Transpose <perm = [0,3,1,2]> (n)\n y = Conv (s, w_3_4_1_1, b_3)",
    "norm and several products": f"{_ROWS}n = LayerNormalization <axis = -1, epsilon = 0.001> (f, p_16, b_16)\n a = MatMul (n, w_16_4)\n c = MatMul (n, v_16_4)\n d = Mul (a, c)\n y = Add (d, b_4)",
    "norm by gains": f"{_ROWS}n = LayerNormalization <axis = -1> (f, p_16)\n g = Mul (n, q_16)\n h = Add (g, c_16)\n s = Slice (h, i_0, i_8, i_1)\n y = MatMul (s, w_16_4)",
    "group norm": f"{_FRONT}r = Reshape (c, i_0_2_128)\n n = InstanceNormalization <epsilon = 0.01> (r, p_2, b_2)\n d = Reshape (n, i_0_4_8_8)\n g = Mul (d, p_4_1_1)\n h = Add (g, b_4_1_1)\n y = Conv (h, w_2_4_1_1)",
    "instance norm": f"{_FRONT}n = InstanceNormalization <epsilon = 0.01> (c, p_4, b_4)\n r = Relu (n)\n y = Conv (r, w_2_4_3_3)",
    # softmax
    "softmax of channels": f"{_FRONT}s = Softmax <axis = 1> (c)\n y = Conv (s, w_2_4_1_1)",
    "softmax of a vector": "f = Flatten (x)\n a = MatMul (f, w_256_8)\n s = Softmax (a)\n y = MatMul (s, w_8_3)",
    "softmax at the end": "f = Flatten (x)\n a = MatMul (f, w_256_8)\n c = Add (a, b_8)\n y = Softmax (c)",
    "mask and rest": f"{_ROWS}k = Transpose <perm = [0,2,1]> (f)\n s = MatMul (f, k)\n p = Add (s, v_16_16)\n m = Add (p, mask)\n a = Softmax <axis = -1> (m)\n y = MatMul (a, f)",
    "mask of numbers only": f"{_ROWS}k = Transpose <perm = [0,2,1]> (f)\n s = MatMul (f, k)\n d = Mul (s, half)\n m = Add (mask, d)\n a = Softmax <axis = 2> (m)\n n = IsNaN (a)\n w = Where (n, zero, a)\n y = MatMul (w, f)",
    "scores by where": f"{_ROWS}g = MatMul (f, w_16_16)\n w = Where (truth, g, far)\n a = Softmax <axis = -1> (w)\n n = IsNaN (a)\n v = Where (n, zero, a)\n y = MatMul (v, w_16_3)",
    # functions by parts
    "softplus, guarded": f"{_FRONT}s = Softplus (c)\n g = Greater (c, twenty)\n y = Where (g, c, s)",
    "softplus of rows": f"{_ROWS}a = MatMul (f, w_16_8)\n s = Softplus (a)\n g = Greater (a, twenty)\n w = Where (g, a, s)\n y = MatMul (w, w_8_3)",
    "gelu of rows": f"{_ROWS}a = MatMul (f, w_16_8)\n d = Div (a, root2)\n e = Erf (d)\n g = Add (e, one)\n m = Mul (a, g)\n h = Mul (m, half)\n y = MatMul (h, w_8_4)",
    "gelu, half first": f"{_FRONT}h = Mul (c, half)\n d = Mul (c, near)\n e = Erf (d)\n g = Add (one, e)\n y = Mul (h, g)",
    "gelu by cubes": f"{_FRONT}p = Pow (c, three)\n d = Mul (p, cube)\n e = Add (c, d)\n h = Mul (e, root)\n t = Tanh (h)\n u = Add (t, one)\n v = Mul (u, half)\n y = Mul (c, v)",
    "swish of rows": f"{_ROWS}a = MatMul (f, w_16_8)\n s = Sigmoid (a)\n m = Mul (s, a)\n y = MatMul (m, w_8_4)",
    "mish of rows": f"{_ROWS}a = MatMul (f, w_16_8)\n s = Softplus (a)\n t = Tanh (s)\n m = Mul (a, t)\n y = MatMul (m, w_8_4)",
    "hard swish of rows": f"{_ROWS}a = MatMul (f, w_16_8)\n g = HardSigmoid <alpha = 0.1666667, beta = 0.5> (a)\n m = Mul (g, a)\n y = MatMul (m, w_8_4)",
    "hard swish by clips": f"{_FRONT}e = Add (three, c)\n g = Clip (e, zero, six)\n h = Div (g, six)\n m = Mul (c, h)\n y = Conv (m, w_2_4_1_1)",
    "magnitude": f"{_FRONT}d = Conv (x, v_4_4_1_1)\n p = Mul (c, c)\n q = Mul (d, d)\n s = Add (p, q)\n y = Sqrt (s)",
    "magnitude, weighed": f"{_FRONT}p = Pow (c, two)\n q = Mul (x, x)\n s = Sum (p, q, p)\n r = Sqrt (s)\n y = Conv (r, w_2_4_1_1)",
    # layout
    "moved channels": "t = Transpose <perm = [0,2,3,1]> (x)\n r = Relu (t)\n g = Mul (r, half)\n s = Transpose <perm = [0,3,1,2]> (g)\n y = Conv (s, w_2_4_1_1)",
    "channels last and flat": f"{_IMAGE}t = Transpose <perm = [0,2,3,1]> (k)\n f = Flatten (t)\n y = Gemm <transB = 1> (f, w_6_256, b_6)",
    "channels last, two readers": f"{_IMAGE}t = Transpose <perm = [0,3,1,2]> (k)\n f = Reshape (t, i_0_256)\n a = Gemm (f, w_256_3)\n b = MatMul (f, v_256_3)\n y = Concat <axis = 1> (a, b)",
    "flat twice": f"{_IMAGE}f = Reshape (k, i_0_256_1_1)\n g = Reshape (f, i_1_256)\n a = Gemm (g, w_256_3, b_3)\n r = Reshape (a, i_0_3_1_1)\n c2 = Conv (r, w_5_3_1_1)\n y = Flatten (c2)",
    "turned and back": f"{_IMAGE}t = Transpose <perm = [0,1,3,2]> (k)\n s = Transpose <perm = [0,3,2,1]> (t)\n y = Conv (s, w_2_8_1_1)",
    "of one pixel": "g = GlobalMaxPool (x)\n t = Transpose <perm = [0,2,3,1]> (g)\n r = Reshape (t, i_0_4_1_1)\n s = Sigmoid (r)\n y = Mul (s, x)",
    "convolution of the whole": f"{_IMAGE}d = Conv (k, w_5_4_8_8, b_5)\n f = Flatten (d)\n r = Relu (f)\n y = Gemm (r, w_5_3, b_3)",
    "shuffle of three": "a = Conv (x, w_12_4_1_1, b_12)\n r = Reshape (a, i_0_3_4_8_8)\n t = Transpose <perm = [0,2,1,3,4]> (r)\n s = Reshape (t, i_0_12_8_8)\n g = Gather <axis = 1> (s, i_3_0_1_11)\n y = Conv (g, w_2_4_1_1)",
    "flat sums": f"{_IMAGE}f = Reshape (k, i_0_256)\n g = Reshape (x, i_0_256)\n s = Add (f, g)\n r = Relu (s)\n j = Concat <axis = 1> (r, g)\n d = Reshape (j, i_0_8_8_8)\n y = Conv (d, w_2_8_1_1)",
    # products
    "experts": "f = Reshape (x, i_0_4_8_8)\n p = MatMul (f, w_4_8_3)\n r = Relu (p)\n y = MatMul (r, v_4_3_2)",
    "experts of one row": "f = Reshape (x, i_0_16_1_16)\n p = MatMul (f, w_16_16_2)\n y = Reshape (p, i_0_32)",
    "left of several": "f = Reshape (x, i_0_2_8_16)\n p = MatMul (w_3_8, f)\n r = Relu (p)\n y = MatMul (v_5_3, r)",
    "left of a column": "f = Reshape (x, i_0_256_1)\n p = MatMul (w_6_256, f)\n a = Add (p, b_6_1)\n y = Sigmoid (a)",
    "one row": "f = Reshape (x, i_0_1_256)\n a = MatMul (f, w_256_8)\n c = Add (a, b_8)\n m = Mul (c, half)\n r = Relu (m)\n y = MatMul (r, w_8_3)",
    "bias and gains": f"{_ROWS}a = MatMul (f, w_16_8)\n c = Add (b_8, a)\n d = Div (c, p_8)\n e = Sub (d, half)\n y = Relu (e)",
    "outer": f"{_ROWS}a = ReduceMean <axes = [2]> (f)\n c = ReduceMax <axes = [1]> (f)\n m = Mul (a, c)\n r = Sigmoid (m)\n y = MatMul (r, w_16_3)",
    "focal": "t = Transpose <perm = [0,2,3,1]> (x)\n q = MatMul (t, w_4_4)\n g = ReduceMean <axes = [3]> (q)\n v = ReduceMean <axes = [1,2]> (q)\n m = Mul (g, v)\n s = Add (m, q)\n y = MatMul (s, w_4_2)",
    "gated rows": f"{_ROWS}a = MatMul (f, w_16_16)\n g = Sigmoid (a)\n m = Mul (f, g)\n h = ReduceMean <axes = [2]> (m)\n n = Mul (m, h)\n k = ReduceMean <axes = [1]> (n)\n s = Sub (n, k)\n y = MatMul (s, w_16_3)",
    "heads, scaled first": f"{_ROWS}q = MatMul (f, w_16_16)\n qs = Div (q, root2)\n qh = Reshape (qs, i_0_16_4_4)\n qt = Transpose <perm = [0,2,1,3]> (qh)\n kh = Reshape (f, i_0_16_4_4)\n kt = Transpose <perm = [0,2,3,1]> (kh)\n"
    "s = MatMul (qt, kt)\n a = Softmax <axis = -1> (s)\n ah = Transpose <perm = [0,2,1,3]> (kh)\n o = MatMul (a, ah)\n m = Mul (o, half)\n ot = Transpose <perm = [0,2,1,3]> (m)\n r = Reshape (ot, i_0_16_16)\n y = MatMul (r, w_16_3)",
    "fused heads": f"{_ROWS}p = MatMul (f, w_16_48)\n b = Add (p, b_48)\n h = Reshape (b, i_0_16_3_2_8)\n t = Transpose <perm = [2,0,3,1,4]> (h)\n q, k, v = Split <axis = 0> (t)\n qs = Squeeze (q, i_0)\n ks = Squeeze (k, i_0)\n vs = Squeeze (v, i_0)\n"
    "kt = Transpose <perm = [0,1,3,2]> (ks)\n s = MatMul (qs, kt)\n m = Mul (s, eighth)\n a = Softmax <axis = -1> (m)\n o = MatMul (a, vs)\n ot = Transpose <perm = [0,2,1,3]> (o)\n r = Reshape (ot, i_0_16_16)\n y = MatMul (r, w_16_3)",
    # gains, means, sums
    "weighed sum": f"{_ROWS}a = MatMul (f, w_16_16)\n g = Mul (a, half)\n s = Add (g, f)\n h = Mul (s, two)\n t = Sub (h, a)\n y = MatMul (t, w_16_3)",
    "scaled twice": f"{_FRONT}g = Mul (c, p_4_1_1)\n h = Add (g, b_4_1_1)\n m = Div (h, q_4_1_1)\n d = Conv (m, w_6_4_3_3, b_6)\n s = Mul (d, half)\n e = Sub (s, c_6_1_1)\n y = Relu (e)",
    "scaled behind padding": f"{_IMAGE}g = Mul (k, p_4_1_1)\n d = Conv {CONV} (g, w_4_4_3_3, b_4)\n h = Add (d, b_4_1_1)\n y = Conv {CONV} (h, v_4_4_3_3)",
    "normalised twice": f"n = BatchNormalization <epsilon = 0.001> (x, p_4, b_4, c_4, q_4)\n {CONV and ''}a = Conv (n, w_4_4_3_3, b_4)\n m = BatchNormalization (a, p_4, b_4, c_4, q_4)\n r = Relu (m)\n k = BatchNormalization (r, q_4, c_4, b_4, p_4)\n y = Add (k, r)",
    "normalised vector": "f = Flatten (x)\n a = Gemm (f, w_256_6, b_6)\n n = BatchNormalization (a, p_6, b_6, c_6, q_6)\n r = Relu (n)\n y = Gemm (r, w_6_3)",
    "deconvolution normalised": "a = ConvTranspose <strides = [2,2]> (x, w_4_3_2_2, b_3)\n n = BatchNormalization (a, p_3, b_3, c_3, q_3)\n r = Relu (n)\n y = Conv (r, w_2_3_1_1)",
    "means of rows": f"{_ROWS}n = LayerNormalization <axis = -1> (f, p_16, b_16)\n m = ReduceMean <axes = [1], keepdims = 0> (n)\n y = Gemm (m, w_16_3, b_3)",
    "sums and largest": "f = Reshape (x, i_0_4_8_8)\n a = MatMul (f, w_8_6)\n s = ReduceSum (a, i_1_2)\n g = ReduceMax <axes = [1,3]> (a)\n h = ReduceMean <axes = [1]> (a)\n t = Mul (s, h)\n u = Add (t, g)\n y = MatMul (u, w_6_2)",
    "positions of channels": f"{_ROWS}a = MatMul (f, w_16_16)\n e = Add (a, v_16_1)\n g = Mul (e, p_16_16)\n h = Sub (v_16, g)\n y = MatMul (h, w_16_3)",
    # activations, padding, pools
    "clips": f"{_FRONT}l = Clip (c, zero, six)\n m = Clip (l, half, eight)\n p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (m)\n n = Clip (p, one, three)\n y = Conv (n, w_2_4_1_1)",
    "relu behind moves": f"{_FRONT}p = MaxPool <kernel_shape = [3,3], pads = [1,1,1,1]> (c)\n t = Transpose <perm = [0,1,3,2]> (p)\n r = Relu (t)\n f = Flatten (r)\n z = Relu (f)\n y = Gemm (z, w_256_3)",
    "tables": f"{_FRONT}t = Tanh (c)\n d = Conv (t, w_4_4_1_1, b_4)\n s = Sigmoid (d)\n e = Conv (s, v_4_4_1_1, b_4)\n l = LeakyRelu <alpha = 0.2> (e)\n a = Add (l, s)\n y = Elu (a)",
    "padded pools": f"{_IMAGE}q = Pad (k, i_0_0_1_1_0_0_1_1)\n p = MaxPool <kernel_shape = [3,3], strides = [2,2]> (q)\n u = Pad (p, i_0_0_0_1_0_0_1_0)\n v = AveragePool <kernel_shape = [2,2], count_include_pad = 1> (u)\n y = Conv (v, w_2_4_1_1)",
    "padded twice": "q = Pad (x, i_0_0_1_0_0_0_0_1)\n c = Conv (q, w_4_4_3_3, b_4)\n d = Conv <pads = [1,0,0,0]> (q, v_4_4_3_3)\n s = Add (c, c)\n y = Concat <axis = 2> (s, d)",
    "sums of pools": f"{_IMAGE}p = AveragePool <kernel_shape = [2,2], strides = [2,2]> (k)\n d = Conv <strides = [2,2]> (k, w_4_4_1_1, b_4)\n s = Add (p, d)\n m = MaxPool <kernel_shape = [2,2], strides = [2,2]> (x)\n t = Add (m, s)\n y = Relu (t)",
    "sum of three branches": f"{_IMAGE}d = Conv {CONV} (k, w_4_4_3_3, b_4)\n e = Conv {CONV} (d, v_4_4_3_3)\n s = Sum (e, k, d)\n r = Relu (s)\n g = Conv (r, u_4_4_1_1)\n t = Sub (g, k)\n y = Add (t, t)",
    "residual with layers between": f"{_IMAGE}d = Conv {CONV} (k, w_4_4_3_3, b_4)\n p = Clip (d, zero, six)\n s = Add (p, k)\n e = Conv <pads = [1,1,1,1], group = 4> (s, w_4_1_3_3)\n t = Add (k, e)\n y = Clip (t, zero, three)",
    "means of images": f"{_IMAGE}g = GlobalAveragePool (k)\n d = Conv (g, w_4_4_1_1, b_4)\n s = Sigmoid (d)\n m = Mul (s, k)\n u = Add (m, g)\n v = Sub (u, x)\n y = ReduceMean <axes = [2,3], keepdims = 0> (v)",
    "chosen parts": f'{_IMAGE}a, b = Split <axis = 1> (k)\n s = Slice (a, i_1, i_7, i_2)\n t = Slice (b, i_0, i_6, i_2)\n m = Mul (s, t)\n p = Pad <mode = "reflect"> (m, i_0_0_1_1_0_0_1_1)\n y = Conv (p, w_2_2_3_3)',
    "moved depth": f'{_IMAGE}d = SpaceToDepth <blocksize = 2> (k)\n c1 = Conv (d, w_8_16_1_1, b_8)\n e = DepthToSpace <blocksize = 2, mode = "CRD"> (c1)\n r = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (e, , f_1_1_2_2)\n y = Conv <strides = [2,2]> (r, w_2_2_3_3)',
    "unlike pools": f"{_IMAGE}p = MaxPool <kernel_shape = [3,2], strides = [1,2], pads = [1,0,1,1]> (k)\n q = AveragePool <kernel_shape = [2,3], pads = [0,1,1,1], ceil_mode = 1, strides = [2,2]> (p)\n r = LpPool <kernel_shape = [2,1]> (q)\n y = Conv (r, w_2_4_1_1)",
    "lrn and lengths": f"{_IMAGE}n = LRN <size = 3, alpha = 0.01> (k)\n d = Conv (n, w_4_4_1_1)\n l = LpNormalization <axis = 1> (d)\n y = Conv (l, w_2_4_1_1)",
    "slopes": f"{_FRONT}r = PRelu (c, p_4_1_1)\n d = Conv (r, w_4_4_1_1, b_4)\n q = PRelu (d, half)\n l = LeakyRelu <alpha = 0.25> (q)\n t = ThresholdedRelu <alpha = 0.3> (l)\n y = Conv (t, w_2_4_1_1)",
    "largest and least": f"{_FRONT}m = Max (c, x)\n n = Min (m, three)\n o = Max (n, b_4_1_1)\n q = Min (o, x, c)\n y = Conv (q, w_2_4_1_1)",
    # quantized files
    "rounded moves": "xq = QuantizeLinear (x, step, z8)\n xd = DequantizeLinear (xq, step, z8)\n t = Transpose <perm = [0,1,3,2]> (xd)\n tq = QuantizeLinear (t, step, z8)\n td = DequantizeLinear (tq, step, z8)\n r = Relu (td)\n rq = QuantizeLinear (r, step, z8)\n rd = DequantizeLinear (rq, step, z8)\n"
    "j = Concat <axis = 1> (rd, td)\n jq = QuantizeLinear (j, step, z8)\n y = DequantizeLinear (jq, step, z8)",
    "rounded clips": "a = Conv (x, w_4_4_1_1, b_4)\n aq = QuantizeLinear (a, step2, z5)\n ad = DequantizeLinear (aq, step2, z5)\n c = Clip (ad, zero, three)\n cq = QuantizeLinear (c, step2, z5)\n cd = DequantizeLinear (cq, step2, z5)\n"
    "p = MaxPool <kernel_shape = [2,2], strides = [2,2]> (cd)\n pq = QuantizeLinear (p, step2, z5)\n pd = DequantizeLinear (pq, step2, z5)\n f = Flatten (pd)\n y = Relu (f)",
    "rounded products": "xq = QuantizeLinear (x, step, u128)\n xd = DequantizeLinear (xq, step, u128)\n f = Reshape (xd, i_0_16_16)\n wd = DequantizeLinear (k_16_8, step)\n a = MatMul (f, wd)\n aq = QuantizeLinear (a, step2, z5)\n ad = DequantizeLinear (aq, step2, z5)\n"
    "s = Softmax <axis = -1> (ad)\n sq = QuantizeLinear (s, fine, low)\n sd = DequantizeLinear (sq, fine, low)\n t = Transpose <perm = [0,2,1]> (sd)\n b = MatMul (t, f)\n bq = QuantizeLinear (b, step2, u9)\n y = DequantizeLinear (bq, step2, u9)",
    # sequences
    "gru": "f = Reshape (x, i_8_1_32)\n a, h = GRU <hidden_size = 3> (f, w_1_9_32, w_1_9_3, b_1_18)\n s = Squeeze (a, i_1)\n t = Reshape (s, i_1_8_3)\n y = MatMul (t, w_3_2)",
    "lstm with states": 'f = Reshape (x, i_8_1_32)\n a, h, c = LSTM <hidden_size = 3> (f, w_1_12_32, w_1_12_3, b_1_24, , b_1_1_3, c_1_1_3)\n d, e, g = LSTM <hidden_size = 3, direction = "reverse"> (f, v_1_12_32, v_1_12_3, , , h, c)\n s = Concat <axis = 0> (e, g)\n y = Reshape (s, i_1_6)',
    # what near misses of the others showed to be missing
    "mask with a rest": f"{_ROWS}k = Transpose <perm = [0,2,1]> (f)\n s = MatMul (f, k)\n m = Add (s, relative)\n a = Softmax <axis = -1> (m)\n y = MatMul (a, f)",
    "mask of some by where": f"{_ROWS}g = MatMul (f, w_16_16)\n w = Where (truth, half, g)\n a = Softmax <axis = -1> (w)\n y = MatMul (a, w_16_3)",
    "padded operands": f"{_ROWS}p = Pad (f, i_0_0_1_0_0_1)\n q = Sigmoid (p)\n t = Transpose <perm = [0,2,1]> (p)\n m = MatMul (q, t)\n s = Slice (m, i_2, i_15, i_1)\n y = MatMul (s, f)",
    "clipped norm": f"{_ROWS}n = LayerNormalization <axis = -1> (f, p_16, b_16)\n r = Relu (n)\n a = MatMul (r, w_16_8)\n m = LayerNormalization <axis = -1> (a, p_8)\n s = MatMul (m, w_8_4)\n t = Clip (s, zero, six)\n y = MatMul (t, w_4_2)",
    "means of one": "f = Reshape (x, i_0_4_1_64)\n a = MatMul (f, w_64_6)\n m = ReduceMean <axes = [2]> (a)\n s = ReduceSum (m, i_1)\n g = ReduceMax <axes = [1,2]> (a)\n h = Mul (s, g)\n y = MatMul (h, w_6_3)",
    "means of axes apart": "f = Reshape (x, i_0_4_8_8)\n a = MatMul (f, w_8_8)\n m = ReduceMean <axes = [1,3], keepdims = 0> (a)\n y = Gemm (m, w_8_3, b_3)",
    "magnitude of one": f"{_FRONT}q = Mul (c, c)\n s = Sum (q)\n r = Sqrt (s)\n p = Mul (x, x)\n t = Add (q, p)\n u = Relu (t)\n v = Sqrt (u)\n y = Add (r, v)",
    "chosen rows": f"{_ROWS}a = MatMul (f, w_16_16)\n s = Slice (a, i_0, i_8, i_2)\n t = Slice (a, i_8, i_16, i_2)\n u = Transpose <perm = [0,2,1]> (t)\n m = MatMul (s, u)\n e = Mul (m, half)\n y = Softmax <axis = -1> (e)",
    "one group": "f = Reshape (x, i_0_1_16_16)\n p = MatMul (f, w_1_16_4)\n r = Relu (p)\n q = MatMul (r, v_4_4)\n y = MatMul (w_3_16, q)",
    "pools of what is positive": f"{_IMAGE}s = Sigmoid (c)\n a = Add (k, s)\n j = Concat <axis = 1> (a, k)\n q = Pad (j, i_0_0_1_1_0_0_1_1)\n p = MaxPool <kernel_shape = [3,3], strides = [2,2]> (q)\n m = AveragePool <kernel_shape = [2,2]> (p)\n r = Pad (m, i_0_0_0_0_0_0_1_1)\n y = MaxPool <kernel_shape = [2,2]> (r)",
    "layers read by several": f"{_IMAGE}g = Mul (k, p_4_1_1)\n a = Conv (g, w_4_4_1_1, b_4)\n d = Conv (g, v_4_4_1_1)\n t = Transpose <perm = [0,2,3,1]> (g)\n r = Relu (t)\n u = Transpose <perm = [0,3,1,2]> (r)\n e = Add (a, d)\n y = Add (e, u)",
}
"""The nodes of networks from x (1, 4, 8, 8) to y."""
ALL = {**TEXTS, **FORMS}
