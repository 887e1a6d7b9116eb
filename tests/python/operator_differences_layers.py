# SPDX-License-Identifier: MIT
"""Where operators of neural networks differ from PyTorch's on purpose, and why, as only other values and sizes show (compare_operators.py
--seed): more rules for operator_differences.py, which see. Importing this file adds them."""

from operator_differences import FIRST, MORE, RESULTS, TEXTS, UNCHECKED

EMPTY = r"\b(bool|b?f16|f32|f64|c64|c128|u8|i8|i16|i32|i64)\[(\d+,)*0\b"
HALVES = r"\bb?f16\["
NOTHING = "Tenon looks at dtypes, sizes and indices also where there are no elements"
ON_ITS_WAY = "Both refuse it; the reference meets a missing element on its way"
MEMORY = "Memory that the reference does not write: what happened to lie there"
BY_LIBRARY = ("A result and a gradient have their channels last where the input or the weight has; the reference's where a library computes them, "
              "which depends on sizes and dtypes")
AS_LEFT = "A gradient that `autograd.grad` hands out lies in memory as its formula left it; `.grad` has the layout of its tensor in both"
ROUNDED = "Rounding: of three numbers now one library is nearer to what `float64` gives, now the other; both round between steps"
SEVERAL = "Both refuse it, for one of several faults: each names the one that it meets first"
CONV = r"_?conv\w*(\.\w+)?"
NUMBERS = r"\b(bool|u8|i8|i16|i32|i64)\["

RESULTS += [
    # Where there is nothing to compute.
    (r"_?adaptive_\w+|max_unpool[23]d|fractional_max_pool2d|multi(label)?_margin_loss\w*|native_layer_norm_backward|grid_sampler\w*|"
     + CONV, EMPTY + r"|, \[0,2\]$|\[False,False,False\]", r"^(NotImplementedError: \"\w+\" not implemented for '\w+'|RuntimeError: mixed dtype \(CPU\).*)$", NOTHING),
    (r"_cdist_backward|_pdist_forward", EMPTY + r"|^(c64|c128|i8|i16|i32|i64|u8|bool)\[1,", r"^RuntimeError: [cp]dist only supports floating-point dtypes", NOTHING),
    (r"embedding_renorm_?", EMPTY + r"|i(8|16)\[2,4\]", r"^RuntimeError: norm\(\): input dtype should be", NOTHING),
    (r"native_dropout", EMPTY, r"^RuntimeError: result type Float can't be cast", NOTHING),
    (r"_?embedding_bag(\.padding_idx)?", r"\w+\[1,\d+\]\S*, i\d+\[", r"^RuntimeError: Index 0 of input takes value 2", UNCHECKED),
    (r"_?embedding_bag", EMPTY, r"^RuntimeError: Index \d of input takes value", UNCHECKED),
    (r"_?scaled_dot_product_attention(_math)?", NUMBERS, r"^(RuntimeError: (expected scalar type Float but found|value cannot be converted)|values differ)",
     "Attention has no meaning for whole numbers: both refuse what is computed; the reference gives 0 or noise where keys are hidden, or there are none"),
    (r"bilinear", EMPTY, r"(no error, but|NotImplementedError, not) RuntimeError: cannot reshape tensor of 0 elements", "The reference fails to reshape no elements"),
    (r"batch_norm|instance_norm", EMPTY, r"(no error, but|not) (IndexError: select\(\): index 0|RuntimeError: The size of tensor a)",
     "The reference fails on no channels or samples, in what it is made of"),
    (CONV, EMPTY, r"^RuntimeError, not IndexError: select\(\): index 0 out of range", ON_ITS_WAY),
    (CONV, HALVES, r"^RuntimeError: Given input size per channel: .*Calculated output size per channel", UNCHECKED),
    (CONV, EMPTY, r"^RuntimeError: (kernel size should be greater than zero|non-empty 5D|Given input size per channel|a convolution has at most three)", NOTHING),
    (r"(lstm|gru|rnn_\w+)\.\w+", r"", r"^RuntimeError, not (IndexError: select\(\)|ValueError: torch\.cat\(\))", ON_ITS_WAY),
    (r"embedding|_?embedding_bag", r"", r"^IndexError, not RuntimeError: (INDICES element is out of DATA bounds|index_select\(\): self indexing axis)",
     "An index out of range is an `IndexError` in every layout; some kernels of the reference raise a `RuntimeError`"),
    (r"embedding_renorm_?", NUMBERS, r"^RuntimeError, not IndexError: select\(\): index", SEVERAL),
    (r"nll_loss_nd|cross_entropy_loss", EMPTY, r"^(IndexError|NotImplementedError), not RuntimeError: size mismatch", SEVERAL),
    (r"multilabel_margin_loss_forward", EMPTY, r"^values differ", MEMORY),
    (r"stft\.center", EMPTY, r"no error, but RuntimeError: Expected 2D or 3D", "The reference fails to pad no elements"),
    # What the reference does not look at.
    (r"_adaptive_avg_pool3d_backward|fractional_max_pool3d_backward", r"", r"^RuntimeError: \w+\(\): Expected 4D or 5D tensor", UNCHECKED),
    (r"adaptive_avg_pool2d|adaptive_avg_pool3d", r"\[1,1(,1)?\]$", r"^RuntimeError: adaptive_avg_pool[23]d\(\): Expected \dD or \dD tensor",
     "To one element the reference takes a mean, and does not look at the number of dimensions"),
    (r"lstm\.data", r"", r"^RuntimeError: weight_ih first dim must be", UNCHECKED),
    (r"fractional_max_pool2d_backward", EMPTY, r"Expected input to have non-zero size", UNCHECKED),
    (r"linear|tensordot", r"\bbool\[", r"no error, but (RuntimeError: result type Long can't be cast|NotImplementedError: \"dot\")", MORE),
    (r"(adaptive_max_pool[23]d|max_pool2d_with_indices)_backward", r"", r"index \d is out of range for planes of", UNCHECKED),
    (r"_?ctc_loss(_backward)?(\.\w+)?", r"", r"^RuntimeError: (ctc_loss: target \d is out of bounds for \d classes|Expected tensor to have size at least \d at dimension 1, but got size 1 for argument #2|ctc_loss_backward: log_alpha|log_probs tensor must|"
     r"Expected input_lengths|input_lengths must)", UNCHECKED),
    (r"_ctc_loss(\.Tensor)?", r"^\w+\[7,", r"^values differ by up to inf", "What stands behind the end of a sequence in `log_alpha`: " + MEMORY),
    (r"_embedding_bag\w*_backward", r"", r"^(IndexError, not RuntimeError: Expected contiguous|RuntimeError, not IndexError: index_(select|add_)\(\): Index is supposed)", SEVERAL),
    (r"_pack_padded_sequence_backward|_pad_packed_sequence|(lstm|gru|rnn_\w+)\.data", r"", r"^RuntimeError: (batch_sizes add up to|source tensor shape)",
     UNCHECKED),
    (r"_scaled_dot_product_flash_attention_for_cpu(_backward)?", r"", r"^RuntimeError: (The expanded size|scaled_dot_product_attention_flash_attention: Accept only 4)", UNCHECKED),
    (r"_scaled_dot_product_flash_attention_for_cpu", r"^\w+\[\d+,\d+,\d+,0\]", r"^values differ by up to nan",
     "Of heads without elements the scale is infinite, and the logarithm NaN; the reference's is memory that it does not write"),
    (r"_weight_norm(_interface)?", r"", r"^RuntimeError: weight_norm: expected g to have", UNCHECKED),
    (r"unfold_backward", r"", r"^RuntimeError: unfold_backward\(\): expected grad_in", UNCHECKED),
    (r"convolution_backward", r"", r"^(RuntimeError: (Expected a tensor of dimension|a convolution has at most)|NotImplementedError, not RuntimeError: Expected a tensor)", UNCHECKED),
    (r"lstm\.input", r"", r"^RuntimeError: (Expected input to have 3 dimensions|weight_ih first dim must be|mat1 and mat2 shapes cannot|Odd number of params)", UNCHECKED),
    (r"(max_pool3d_with_indices|fractional_max_pool[23]d)_backward", r"", r"^RuntimeError: (Given input size|fractional_max_pool[23]d_backward(_out)?\(\): pool)", UNCHECKED),
    (r"native_batch_norm\.out|native_group_norm_backward", r"", r"^RuntimeError: (running_mean should contain|Expected number of channels)", UNCHECKED),
    (r"native_batch_norm\.out", r", False, 0\.1, .*out=", r"^shape \(0,\)", "The reference leaves results that it does not compute at the sizes they were given with"),
    (r"native_batch_norm(_backward|\.out)", r"\.(t|strided|expanded|offset)\b", r"^values differ", "The reference takes any strides for contiguous ones"),
    (r"nll_loss(2d)?_backward", r"", r"^IndexError: Target \d is out of bounds", UNCHECKED),
    (r"nll_loss2d_backward", r"", r"not RuntimeError: grad_input must be contiguous", "The reference refuses a layout that it chose itself"),
    (r"(reflection|replication)_pad[123]d_backward", r"", r"^RuntimeError: (Argument #\d|Expected [234]D or)", UNCHECKED),
    (r"(embedding_bag(\.padding_idx)?)", r"i64\[0\]", r"^values differ by up to 1$", "Without a bag the reference says of indices that they are in bag -1"),
    (r"_?embedding_bag", r"", r"^shape \(\d,\), not \(0,\)", "The reference leaves out in which bag each index lies where a fast path does not need it"),
    (r"pixel_unshuffle|max_pool3d_with_indices", r"\.cl", r"RuntimeError: Unsupported memory format", MORE),
    (r"(hinge_embedding_loss)", r"\b(i8|i16|i32|i64|u8)\[", r"^dtype", "The reference rounds the margin to the integers of `self`"),
    # Which of two faults comes first.
    (r"native_group_norm", NUMBERS + r"|\bc(64|128)\[", r"^NotImplementedError, not RuntimeError: Expected (X\.is_contiguous|weight to be|bias to be)", SEVERAL),
    (r"multilabel_margin_loss(_forward)?", r"", r"^NotImplementedError, not RuntimeError: argument #2 'target' is out of range", SEVERAL),
    (r"(mse|smooth_l1|huber)_loss_backward", NUMBERS, r"^NotImplementedError, not RuntimeError: value cannot be converted", SEVERAL),
    (r"glu\.out|rrelu_with_noise\.out", r"out=\w+\[[^]]*\]\.expanded", r"^NotImplementedError, not RuntimeError: unsupported operation: more than one", SEVERAL),
    (r"glu_backward|huber_loss", r"", r"^NotImplementedError, not RuntimeError: The size of tensor a", SEVERAL),
    (r"stft(\.center)?", r"", r"^NotImplementedError, not RuntimeError: (Argument #4|stft\(|Expected 2D or 3D)", SEVERAL),
    # Values.
    (r"affine_grid_generator", NUMBERS, r"^values differ", "A grid of whole numbers: places between -1 and 1 do not fit, and what is left of them is the processor's"),
    (r"_?upsample_bi(linear|cubic)2d(_aa)?(\.vec)?", r"^\w+\[[\d,]*,1\]", r"^values differ", "Rows of one element: the reference gives all of them the value of the first"),
    (r"upsample_nearest[123]d", r", 1\.5$", r"^(gradient: )?values differ",
     "The reference's gradient, and its kernel for channels last, ignore scales where sizes are equal"),
    (r"grid_sampler_2d_backward", HALVES, r"^values differ by up to 0\.0", "Rounding: the reference keeps places and weights in `float16`, Tenon in `float32`"),
    (r"_euclidean_dist", HALVES, r"^values differ by up to 0\.\d+$", "Rounding: the root of what two squares of `bfloat16` leave, which is 0"),
    (r"native_batch_norm|instance_norm|(native_)?group_norm|_native_batch_norm_legit\.no_stats", r"^f32\[([\d,]*(1\]|1,2\])|1,\d\])", r"values differ by up to \d\.?\d*e-0[56]$",
     "Rounding: of one element the mean is the element, and the rest 0; the reference's is off by a last bit"),
    (r"(native_batch|instance)_norm|_native_batch_norm_legit\.no_stats", HALVES, r"^gradient: values differ by up to 0\.0\d+$",
     "Rounding: the parts of this gradient cancel, and what is left of them in halves is rounding in both"),
    (r"logit_backward", r"^f64", r"^values differ by up to nan$", "Infinities in both"),
    (r"_upsample_\w+_aa(\.vec)?", r", (True|False), (\d\.\d|None)", r"^values differ by up to (nan|0|\d\.?\d*e-1\d)$",
     "Where scales say that results lie beyond the input, the reference reads there, and counts it 0 times: NaN, or not"),
    (r"fractional_max_pool[23]d", HALVES, r"^values differ", "The reference computes in halves where a region begins, which moves it; Tenon in `float32`"),
    (r"(lstm|gru|rnn_\w+)\.(input|data)", r"c64\[", r"^(values differ by up to (\d\.?\d*e-0[45]|0\.000\d*)|gradient: values differ by up to 0\.[01]\d*)$",
     "Rounding: what is near a pole of `sigmoid` or `tanh` of complex numbers; now one library is nearer to what `float64` gives, now the other"),
    (r"rnn_relu\.(input|data)", HALVES, r"^gradient: values differ by up to 1?\d(\.\d+)?$", "Rounding: a sum of halves that is nearly 0 is let through, or not"),
    (r"max_pool3d_with_indices", r"", r"^gradient: values differ by up to inf$",
     "A window that lies in the padding has no element: the reference gives the gradient of its infinity to some other element"),
    (r"max_pool3d_with_indices", r"\.cl", r"^values differ by up to \d+$",
     "A window that lies in the padding has no element, and any index: with channels last the reference gives another than without"),
    (r"pixel_(un)?shuffle", r"\.cl", r"no error, but RuntimeError: Unsupported memory format", MORE),
    (r"gradient\.\w+", r"\bf64\[", r"^values differ by up to \d\.?\d*e-0[89]$", "Rounding: the reference rounds slopes to `float32` on the way to `float64`"),
    (r"cross_entropy_loss|poisson_nll_loss", r"f32\[[\d,]*\], f64", r"^values differ by up to 1\.\d+e-07$", "Rounding: an argument has `float32`"),
    (r"_?scaled_dot_product_\w+|native_group_norm", HALVES, r"^gradient: values differ by up to 0\.0", ROUNDED),
    (r"(lstm|gru|rnn_\w+)(\.\w+|_cell)", HALVES, r"^(values differ by up to 0\.[012]|gradient: values differ by up to 0\.[0-7])", ROUNDED),
    (r"(lstm|gru)\.\w+", r"\bc64\[", r"^gradient: values differ by up to 0\.[012]", "Rounding: numbers near a pole of `tanh` have gradients of thousands, known to four digits"),
    # Layouts.
    (CONV, r"\.(cl|t|strided|expanded)\b", r"^(gradient: )?strides", BY_LIBRARY),
    (r"lstm\.input|stft\.center|norm_except_dim|pixel_shuffle|linalg_householder_product|orgqr|_cdist_forward|angle|linalg_norm|_fft_c2r", r"", r"^gradient: strides", AS_LEFT),
    (r"_foreach_addc(mul|div)\.Tensor", r"\.expanded", r"^strides", "A factor times its number is a fresh tensor, which says how the sum lies"),
    (r"_cdist_backward", EMPTY, r"^strides", "A gradient of no distances is a fresh tensor"),
    (r"soft_margin_loss", r"\.expanded", r"^strides", "A loss lies in memory as its target does where its input repeats elements"),
]

TEXTS += [
    (CONV, r"", r"primitive descriptor|only one dimension can be inferred|invalid shape dimension|narrow\(\): length", "The reference's words are those of a library or of its parts"),
    (r"conv(_transpose)?1d(\.padding)?", r"got input shape: \[\d, \d, \d\]", r"got input shape: \[\d, \d, 1, \d\]", "The reference shows the sizes with a dimension that it added"),
    (r"ctc_loss\.\w+", r"got \d-dim", r"got \d-dim", "The reference counts a dimension that it added"),
    (r"conv_transpose3d\.input", r"^non-empty 5D", r"^non-empty 5D", "The reference shows the weight of a group"),
    (r"_?ctc_loss(\.\w+)?", r"", r"^\"ctc_loss_cpu\" not implemented for '(Half|BFloat16)'$", "The reference has no kernel for halves; Tenon has one, and names another fault"),
    (r"_weight_norm(_interface)?", r"^weight_norm: expected g", r"", UNCHECKED),
    (r"adaptive_avg_pool[23]d", r"", r"^mean\(\): could not infer output dtype", "To one element the reference takes a mean, and does not look at the number of dimensions"),
    (r"adaptive_avg_pool[23]d|max_pool2d(_with_indices)?|native_(batch|layer)_norm|_fused_rms_norm|norm_except_dim|multi_margin_loss|fractional_max_pool3d|"
     r"rrelu_with_noise_?|feature_dropout_|embedding_bag\.padding_idx|_?scaled_dot_product_\w+|stft(\.center)?|bilinear|grid_sampler(_[23]d)?", r"", r"", FIRST),
    (r"istft", r"but got 5$|with 2 or 3 dimensions", r"with 3 or 4 dimensions", "The reference counts a dimension that it added"),
    (r"max_unpool[23]d", r"^Found an invalid max index", r"^Found an invalid max index", "Of several indices that are out of range the reference names the one that a thread met first"),
]
