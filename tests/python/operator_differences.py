# SPDX-License-Identifier: MIT
"""Where Tenon differs from PyTorch on purpose, and why: for compare_operators.py, which see.

Only what the reference does by accident stands here: it crashes, reads or writes what is not its own, loses something without a
word, fails in the words of a library that it calls, or treats one operator otherwise than its kin."""

import collections
import re

FLOAT_CONSTANT = "The reference has a constant of `float32` in a formula for `float64`: about seven digits are right"
LIBRARY = "The reference hands this to a library, which refuses it in its own words; Tenon computes it"
UNCHECKED = "The reference does not check sizes, and reads or writes what is not there"
MORE = "The reference has no kernel for this dtype, layout or device; Tenon computes it"
HALF = "The reference has no kernel for half a float; Tenon computes in `float32`, and rounds"
MIXED = "The reference wants the very dtype of another argument here; Tenon casts"

UNKNOWN = "The reference takes an unknown reduction, mode or normalization for some other, without a word"
SINGULAR = "At a matrix without full rank there is no one gradient, or no one factor: both give some"
LOST = "The reference loses the gradient without a word; Tenon refuses the call, or gives zeros"
DISCARDED = "The reference throws imaginary parts away here; refused, as in its other operators"
CAST = "The reference wants the very dtype here; a result is cast, as in most of its own operators"

# (operators, arguments, what differs: regular expressions; the reason)
RESULTS = [
    (r".*", r"\b(f16|bf16)\[|float16", r"no error, but NotImplementedError: .*not implemented for '(Half|BFloat16)'", HALF),
    (r"index_reduce_?|_weight_norm(_interface)?|bernoulli(\.out)?|_?convolution(_backward|_mode|\.deprecated)?|geometric_?|logit_backward|nanmean|nansum|(std|var)\.(correction|dim)",
     r"c64|c128", r"no error, but NotImplementedError: .*not implemented for 'Complex\w+'", MORE),
    (r"_foreach_powsum\.Scalar|conv_transpose[123]d(\.input)?|_?convolution(\.deprecated)?|(hard|soft)shrink_backward|histogram\.\w+|linalg_householder_product|orgqr|logit_backward|max_pool1d|"
     r"normal\.\w+", r"\b(u8|i8|i16|i32|i64|bool)\[|int64", r"no error, but NotImplementedError: .*not implemented for '(Byte|Char|Short|Int|Long|Bool)'", MORE),
    (r"nll_loss(2d)?_backward|_?native_batch_norm(_legit)?\.out|_weight_norm|rrelu_with_noise\w*|native_(group|layer)_norm_backward|_ctc_loss_backward(\.Tensor)?",
     r"", r"no error, but RuntimeError: expected scalar type \w+ but found \w+", MIXED),
    (r"_fused_rms_norm_backward", r"", r"NotImplementedError: Could not run 'aten::_fused_rms_norm_backward' with arguments from the 'CPU'", MORE),
    (r".*", r"", r"(no error, but|^\w+, not) RuntimeError: .*INTERNAL ASSERT FAILED", "The reference fails an internal assertion"),
    (r"(clamp|clip|abs)(\.out)?", r"out=", r"no error, but RuntimeError: Found dtype \w+ but expected", CAST),
    (r"diff", r", 0, .*out=(f64|f16|c64|i64)", r"no error, but RuntimeError: expected scalar_type", CAST),
    (r"_?native_batch_norm(_legit)?", r"out=(f64|f16|c64)", r"no error, but RuntimeError: expected scalar type", CAST),
    (r"_?native_batch_norm(_legit)?", r"out=larger", r"no error, but RuntimeError: TensorAccessor expected 1 dims",
     "The reference does not resize a given result here; elsewhere it does"),
    (r"gelu|_softmax|_log_softmax(_backward_data)?|narrow_copy|avg_pool3d|adaptive_avg_pool3d|im2col|col2im|fft_r?fftfreq", r"out=\w+\[[^]]*\]\.(t|strided|expanded)",
     r"^values differ",
     "The reference writes a given result of other strides as if it were contiguous"),
    (r".*", r"\b\w+\[\]|f32\[6,2\], \[1,3,2\]", r"RuntimeError, not IndexError: (Dimension (specified|out of range)|select\(\)|slice\(\))",
     "Both refuse a number: Tenon says what sizes it wants, the reference meets a dimension that is not there"),
    (r"mse_loss|smooth_l1_loss|huber_loss", r"\], \w+\[3\]", r"gradient: values differ",
     "The reference divides by the count of `self`, also where `target` makes the result larger"),
    (r"set_.*", r"", r"RuntimeError: setStorage: .*requiring a storage size",
     "The reference makes the storage of `source` larger, under all that use it, with elements that nobody wrote"),
    (r"linalg_matrix_exp|matrix_exp", r"f16", r"values differ", "The reference gives infinities for small matrices of `float16`"),
    (r"_fused_\w+", r"\.(t|strided|expanded)", r"values differ", "The reference takes any strides for those of the parameter"),
    (r"native_(group|layer)_norm_backward|native_group_norm", r"\.(t|strided|expanded)", r"values differ",
     "The reference takes any strides for contiguous ones"),
    (r"(clamp|clip)_?(\.out)?", r", nan(, out=.*)?$", r"values differ by up to nan",
     "The reference takes a NaN that is the only bound for none; with another bound, and in `clamp_min`, it gives NaN, as Tenon does"),
    (r"special_.*", r"", r"with gradients: special_\w+\(\): functions with out=|with gradients: special_", LOST),
    (r"logical_\w+_", r"", r"with gradients: a leaf Variable", LOST),
    (r"fft_\w+|_fft_\w+|stft", r"\b0\b", r"MKL FFT error", LIBRARY),
    (r"gelu_backward", r"", r"itensor_view_from_dense|reorder primitive", LIBRARY),
    (r"mish_backward|smooth_l1_loss_backward|soft_margin_loss_backward", r"", r"dtype tenon",
     "The reference rounds this gradient to the dtype of `self`, that of its kin to the common dtype, as Tenon does"),
    (r"hardsigmoid|hardsigmoid_|hardsigmoid_backward", r"f64", r"values differ by up to \d\.?\d*e-0[789]", FLOAT_CONSTANT),
    (r"binary_cross_entropy|binary_cross_entropy_backward", r"f64.*=1", r"values differ", FLOAT_CONSTANT),
    (r"_scaled_dot_product_flash_attention_for_cpu", r"\.strided|\.t\b", r"values differ",
     "The reference takes every last stride for 1, and reads other elements"),
    (r"_scaled_dot_product_flash_attention_for_cpu", r"\b300[],]", r"gradient: values differ by up to [12]\.\d*e-05",
     "Rounding: both are 1e-5 from what `float64` gives"),
    (r"_scaled_dot_product_flash_attention_for_cpu(_backward)?", r"", r"RuntimeError: scaled_dot_product_attention_flash_attention: Expected",
     UNCHECKED),
    (r"view_as_complex", r"f16", r"no complex dtype", "There is no `complex32` in Tenon"),
    (r"cholesky_solve|cholesky_inverse", r"", r"gradient: values differ",
     "The reference gives elements that the operator never reads a gradient; it is zero"),
    (r".*", r"expanded", r"^RuntimeError: unsupported operation: more than one element of the written-to tensor",
     "Places that share memory would get several values, and one of them would stay: refused, as in every operator that writes"),
    (r"embedding(_dense)?_backward", r"", r"index out of range in self",
     "The reference leaves rows whose index is out of range out of the sum, without a word"),
    (r"\w*_loss(_backward)?|kl_div|binary_cross_entropy(_backward|_with_logits)?", r"\b(-1|3|7)\b", r"reduction is -?\d+, expected 0 \(none\), 1 \(mean\) or 2 \(sum\)", UNKNOWN),
    (r"embedding_bag\.padding_idx", r", (-1|3), (True|False|1), None", r"embedding_bag: mode is 0 to 2, but got", UNKNOWN),
    (r"special_\w+_polynomial_\w+\.x_scalar", r"^nan, ", r"values differ by up to nan",
     "Of the polynomial of NaN the reference gives what happened to lie in memory"),
    (r"linalg_matrix_rank\.tol_tensor", r", (bool|i16|i32|i64)\[[\d,]*\]=0\.5", r"values differ",
     "A tolerance of 0: singular values that are zero but for rounding are counted, or are zero"),
    (r"grid_sampler\w*", r", (-1|3)\b", r"grid_sampler\(\): modes are 0 to 2", UNKNOWN),
    (r"_fft_(r2c|c2c|c2r)", r", (-1|3)\b", r"normalization is 0 to 2, but got", UNKNOWN),
    (r"native_batch_norm", r"", r"should contain \d+ elements", UNCHECKED),
    (r"_fused_sgd_.*|_fused_adam\w*", r"", r"Expected a tensor of size", UNCHECKED),
    (r"lstm\.input|gru\.input|rnn_\w+\.input", r"", r"Expected more hidden states in stacked_rnn",
     "The reference takes the first hidden states, and drops the others without a word"),
    (r"lstm\.input", r"", r"The size of tensor a", "The reference hands hidden states of another batch to a library, and gives some result"),
    (r"_pack_padded_sequence", r"", r"no length to be larger than the padded length",
     "The reference gives a packed sequence whose batch sizes do not count its rows"),
    (r"_reshape_alias(_copy)?", r"", r"setStorage: sizes", UNCHECKED),
    (r"_logcumsumexp", r"out=(f64|i64|c64|f16|bool|f32|bf16|c128)\[2,3\]$", r"^RuntimeError: expected scalar_type \w+ but found", UNCHECKED),
    (r"_int_mm", r"\.expanded", r"^values differ", "The reference takes any strides for contiguous ones"),
    (r"_int_mm", r"out=", r"no error, but (RuntimeError: int_mm_out_cpu: Expected result|IndexError: Dimension specified as 0)",
     "The reference wants a given result of the very sizes, contiguous; Tenon resizes and writes it, as everywhere"),
    (r"__i?(and|or|xor|[lr]shift)__\.\w+", r", other=", r"^TypeError: wrapper __\w+__\(\) takes no keyword arguments",
     "Python's operators take what stands on their right by place, as those of its own numbers do"),
    (r"_addmm_activation", r"out=(f64|c64|f16|f32|bf16|c128)", r"no error, but RuntimeError: Expected out tensor to have dtype", CAST),
    (r"_chunk_cat", r"out=(i64|bool|f64|f16|f32)\[", r"^RuntimeError, not TypeError: torch\.cat\(\): input types can't be cast", "Both refuse the dtype of a given result"),
    (r"_chunk_cat", r"\[f32\[\], ", r"^IndexError, not RuntimeError: _chunk_cat expects dim < ndim", "Both refuse a number: Tenon names the dimension that is not there"),
    (r"_convolution_mode", r"f32\[4,1,3\]\.t", r"^strides", "The reference takes this weight for that of images with channels last"),
    (r"_add_relu\.(Tensor|Scalar)", r"alpha=True", r"^RuntimeError: Boolean alpha only supported for Boolean results",
     "Boolean factors are refused as in `add`, of which it is the `relu`"),
    (r"__[lr]shift__\.\w+", r"out=", r"^TypeError: wrapper __[lr]shift__\(\) takes no keyword arguments",
     "Python's `<<` has no `out`: the reference answers `NotImplemented`, without a word"),
    (r"unfold_backward", r"", r"maximum size for tensor at dimension", UNCHECKED),
    (r"(_?linalg_)?(qr|svd|lstsq|matrix_norm|norm)(\.\w+)?|nuclear_norm(\.dim)?|(linalg_)?(slog|log)?det|linalg_solve_ex|geqrf|linalg_cond", r"expanded",
     r"values differ|gradient: (torch.)?linalg.solve: The solver failed", SINGULAR),
    (r"(lstm|gru|rnn_\w+)\.data|_?embedding_bag", r"\.(strided|expanded)", r"no error, but", "The reference takes any strides for contiguous ones"),
    (r"_scaled_dot_product_flash_attention_for_cpu(_backward)?", r"\.(cl|t|strided)", r"values differ",
     "The reference takes every last stride for 1, and reads other elements"),
    (r"_fused_\w+(\.tensor_lr)?", r"\.(t|strided|expanded)", r"values differ", "The reference takes any strides for those of the parameter"),
    (r"_fused_adam\w*\.tensor_lr", r"", r"Expected a tensor of size", UNCHECKED),
    (r"_ctc_loss(_backward)?(\.Tensor)?", r"=1,.*(-1|\b[17]|True)$|blank=1|2,5,4\]", r"values differ|blank must be|log_alpha must have",
     "A blank that is a label, or none of them: the reference reads and writes what is not there"),
    (r"_weight_norm(_interface)?", r"", r"values differ|no error, but", UNCHECKED),
    (r"native_batch_norm\.out", r"\.cl.*out=", r"^values differ",
     "The reference writes the values of a channels-last input in the order of its memory into an `out` of other strides"),
    (r"_upsample_\w+_aa(\.vec)?|_native_batch_norm_legit\.out", r"out=\w+\[[^]]*\]\.t|\.(strided|expanded)", r"^values differ",
     "The reference writes a given result of other strides as if it were contiguous"),
    (r"multi(label_)?_?margin_loss(_backward|_forward)?", r"\b0,3\]|, (-1|3|True)\b|\[3\], f32\[2,3\]", r"values differ|expected grad_output of size", UNCHECKED),
    (r"(special_)?polygamma", r"i(8|16|32|64)\[", r"values differ by up to inf", "At a pole the reference gives a large number, by rounding"),
    (r"as_strided_scatter", r"", r"gradient: values differ",
     "The reference gives the elements that were replaced a gradient, and none to those that stayed"),
    (r"native_dropout", r"\b0\b", r"dtype tenon.bool", "The reference gives a mask of another dtype where there are no elements"),
    (r"linalg_solve_triangular", r"", r"Expected A and B to have the same dtype", UNCHECKED),
    (r"hardsigmoid", r"f64", r"gradient: values differ by up to \d\.?\d*e-(09|10)", FLOAT_CONSTANT),
    (r"linalg_lu(_factor(_ex)?)?", r"pivot=False", r"no error, but", MORE),
    (r"_pdist_forward", r"strided|\.t\b|expanded", r"requires contiguous input", MORE),
    (r"_pdist_backward", r"\.(t|strided|expanded)", r"no error, but RuntimeError: _pdist_backward requires \w+ to be contiguous", MORE),
    (r".*", r"", r"^NotImplementedError, not RuntimeError: (result type|Found dtype|linalg\.|Unsupported input|mean\(\))",
     "Both refuse the dtype; Tenon's exception is a `RuntimeError`, too"),
    (r"kron|isin\.Scalar_Tensor", r"\.(t|expanded)", r"no error, but RuntimeError: view size is not compatible",
     "The reference fails to view what is not contiguous"),
    (r"norm_except_dim", r"\b0\b", r"no error, but RuntimeError: cannot reshape tensor of 0 elements", "The reference fails to reshape no elements"),
    (r"linalg_tensorinv", r"\[\]", r"no error, but RuntimeError: ArrayRef: invalid slice", "The reference fails an internal assertion"),
    (r"_native_batch_norm_legit(_no_training|\.no_stats)?|native_batch_norm|unfold_backward|index_(copy|fill|reduce)_?(\.int_\w+)?|narrow_copy", r"",
     r"^IndexError, not RuntimeError: (SmallVector unable to grow|setStorage: sizes|Expected dim < static_cast)",
     "Both refuse it: Tenon names the dimension, the reference fails in what it is made of"),
    (r"(reflection|replication)_pad[23]d|adaptive_avg_pool2d|max_unpool2d|im2col|col2im", r"out=\w+\[[^]]*\](\.t)?", r"^strides",
     "The reference gives a result that is given, and fits, other strides"),
    (r"pixel_unshuffle", r"\b0\b", r"^shape", "Where there are no elements the reference returns its input, in sizes that are not those of the result"),
    (r"set_\.source_Tensor_storage_offset", r"", r"^RuntimeError: Could not set tensor of type",
     "The reference takes the bytes of another dtype for its own"),
    (r"_?embedding_bag", r"i64\[1\]=0", r"^shape \(6,\), not \(0,\)",
     "The reference leaves out in which bag each index lies where a fast path does not need it"),
    (r"_?embedding_bag", r"expanded", r"values differ", "The reference takes any strides for contiguous ones"),
    (r"(lstm|gru|rnn_\w+)\.data", r"i64\[3\]\.expanded", r"values differ|^shape", "The reference takes any strides of `batch_sizes` for contiguous ones"),
    (r"(lstm|gru|rnn_\w+)(\.data|\.input|_cell)", r"", r"no error, but RuntimeError: self and mat2 must have the same dtype",
     "Biases of another dtype are added as in `addmm`, where the reference adds them first to the weights' product"),
    (r"mish_backward|glu_backward|soft_margin_loss(_backward)?|(feature_)?(alpha_)?dropout|binary_cross_entropy", r"",
     r"no error, but RuntimeError: (result type \w+ can't be cast|output with shape|The size of tensor a \(0\))",
     "The reference computes in a tensor of the dtype and sizes of one argument; Tenon promotes and broadcasts"),
    (r"inner|narrow_copy|ormqr", r"out=", r"no error, but RuntimeError: .*([Ee]xpected the output tensor|self\.dtype\(\) == output|same dtype)", CAST),
    (r"linalg_(matrix_)?norm", r"c64\[(2,)?3,4\], 1$", r"gradient: values differ",
     "Two columns have the same norm but for rounding: their gradient goes to one of them, or to both"),
    (r"elu_backward|smooth_l1_loss_backward|hamming_window\..*|_fused_adamw?_(\.tensor_lr)?|cosine_embedding_loss|_foreach_(max|min)imum\.Scalar|logit(_backward)?", r"\bnan\b", r"values differ by up to (nan|1\.09)",
     "A parameter that is NaN: one gives NaN everywhere, the other where it is used"),
    (r"_[cp]dist_backward", r", -1", r"^RuntimeError: [cp]dist only supports non-negative p values", UNCHECKED),
    (r"_scaled_dot_product_flash_attention_for_cpu_backward", r", (1\.5|-1|2|True|nan), (True|False)", r"Currently do not support dropout", "The reference takes no notice of the dropout"),
    (r"cholesky_inverse", r"c(64|128)\[", r"values differ", "The diagonal of a complex Cholesky factor is real: of others, each library uses other parts"),
    (r"ctc_loss\.\w+", r"i64\[3\]\.expanded", r"values differ", "The reference takes any strides of targets in a row for contiguous ones"),
    # Gradients of the reference that are not the slope of its result, and what it rounds on the way.
    (r"(std|var)(_mean)?\.(dim|correction)", r", \[\]", r"^gradient: values differ",
     "No dimensions are all of them; the reference divides the gradient by the count of none"),
    (r"(special_)?(xlogy|xlog1py)(\.\w+)?", r"i64\[\]|bool\[3\]", r"^gradient: values differ by up to \d\.?\d*e-(09|10)", "Rounding: the reference takes a logarithm in `float32`"),
    (r"logit(_backward)?", r", -1$|f32\[2,3\]=0\.3", r"values differ by up to (0$|1\.\d*e-07)", "Rounding; infinities in both"),
    (r"cross_entropy_loss|ldexp\.Tensor", r"f32\[2,3\], f64|f64\[2\], c64", r"^values differ by up to \d\.?\d*e-08", "Rounding: an argument has `float32`"),
    (r"grid_sampler?(_[23]d)?(_backward)?", r"bf16", r"values differ by up to", "Rounding: the reference keeps places in `bfloat16`, Tenon in `float32`"),
    (r"renorm", r"c(64|128)\[.*\binf\b", r"^gradient: values differ by up to nan", "The reference's gradient is NaN"),
    (r"sinc", r"(bf16|f64)\[(1029,917|812)\]", r"^gradient: values differ by up to (0\.01|\d\.?\d*e-11)", "Rounding: near 0 two numbers cancel in both"),
    (r"sinc", r"f32\[(1029,917|812)\]", r"^gradient: values differ by up to (0\.000|\d\.?\d*e-06)", "Rounding: near 0 two numbers cancel in both, and Tenon is the nearer one"),
    (r"polar", r"f32\[10,1,5\]", r"^gradient: values differ by up to [3-5]\.?\d*e-05", "Rounding"),
    (r"layer_norm", r"f32\[1\], \[1\], ", r"^gradient: values differ by up to [12]\.?\d*e-05", "Rounding: of one element the gradient is 0"),
    (r"_foreach_(max|min)imum\.List", r"bool\[3\]", r"^gradient: values", "Where both are equal the gradient goes to both, each a half"),
    (r"_foreach_add\.Tensor", r"(bool|i64)\[3\], f64\[\]\], f64\[\]", r"^dtype", "The dtype is that of `add`; the reference reads the number first"),
    (r"ctc_loss\.\w+", r"blank=1", r"^gradient: values", "A blank that is a label, or none of them: the reference reads and writes what is not there"),
    (r"_fft_c2r", r"c64\[3,4\], \[0,1\], 2, 3", r"values differ", UNCHECKED),
    (r"(_native_batch_norm_legit|native_batch_norm)\.out", r"\.(t|strided)\b.*out=f32\[0\]", r"^values differ",
     "The reference writes a given result of other strides as if it were contiguous"),
    # What operators are called with that functions are not.
    (r".*_backward|rrelu_with_noise_functional", r"\[\]\.number=", r"no error, but RuntimeError: aten::\w+\(\) Expected a value of type 'number'",
     "An operator takes a tensor without dimensions for a number, as functions do"),
    (r"copy|to\.other|pow\.\w+|remainder\.\w+|fmod\.\w+|copysign\.\w+|(eq|ne|lt|le|gt|ge)\.Scalar", r", (2|0\.5|True)\b", r"^(RuntimeError: aten::copy|TypeError: )",
     "A number is no tensor here: functions of the reference refuse it, too, only its operators do not"),
    (r"split\.\w+|tensordot|index\.Tensor|bernoulli\.Tensor", r"^input=", r"no error, but TypeError: (.*unexpected keyword argument 'input'|bernoulli\(\))", "The reference's function is written in Python, with other names"),
    (r"ctc_loss\.Tensor", r", (2|True), (i32|0)|=2, (2|True), ", r"TypeError: ctc_loss", "A number stands for a length: the reference wants all of them to"),
    (r"tensor_split\.tensor_indices_or_sections", r", True$", r"^list", "A truth value is the number 1, as elsewhere"),
    (r"index_put_?|_unsafe_index_put|_unsafe_masked_index", r"\[None, |, None\], ", r"no error, but TypeError: expected Tensor as element \d", "An index that is None takes all of the dimension, also by name"),
    (r"native_(group|layer)_norm_backward", r", None", r"no error, but RuntimeError: tensor does not have a device", "The reference fails where there is no weight, or no bias"),
    (r"fractional_max_pool2d_backward", r"i64\[3,1,1\]\.expanded", r"^values differ", "The reference takes any strides for contiguous ones"),
    (r"nll_loss2d_backward", r"\.t", r"no error, but RuntimeError: grad_input must be contiguous", "The reference refuses a layout that it chose itself"),
    (r"avg_pool2d_backward", r"bool", r"^NotImplementedError, not RuntimeError", "Both refuse the dtype; Tenon's exception is a `RuntimeError`, too"),
    (r"batch_norm|avg_pool2d_backward", r"\[0,3", r"^(ValueError: running_mean and running_var must|RuntimeError: Expected a tensor of dimension)",
     "Tenon checks sizes and dtypes also where there are no elements"),
    (r"native_group_norm|native_batch_norm\.out", r"^f64\[1,2,(4|3),2,2\]", r"^RuntimeError: (Expected number of channels|running_mean should contain)", UNCHECKED),
    (r"native_group_norm", r"\.cl", r"^gradient: strides", "The gradient of a channels-last image is one"),
    (r"block_diag", r"^\[\]$", r"non-empty TensorList", "No blocks have no dtype"),
    (r"__r(div|mod|pow|sub)__", r"\(2, ", r"^TypeError(, not AttributeError|: descriptor '__r\w+__' requires a 'Tensor' object)",
     "Methods want a tensor to be called of; those of the reference that are written in Python take anything"),
    (r"sub\.Scalar", r", (1\.5, 2|7, 1\.5)$", r"argument alpha must not be", "By place a factor comes last; the reference takes an old order of arguments here"),
    # Layouts that the reference refuses, and Tenon has.
    (r"native_group_norm|max_unpool3d|max_pool3d_with_indices", r"\.(t|strided|expanded|cl)", r"no error, but RuntimeError: (Expected X\.is_contiguous|output must be contiguous|Unsupported memory format)", MORE),
    (r"(special_)?logsumexp", r", \[\]$", r"no error, but RuntimeError: output with shape", "No dimensions are all of them; the reference fails"),
    (r"linear", r"(f32|f64|bf16|c64|i64)\[3\], .*out=f32\[2\]\.strided$", r"^strides", "The reference gives a result that is given, and fits, other strides"),
    (r"linear", r"out=.*\.t$", r"no error, but RuntimeError: The size of tensor a", "The reference fails to write a given result of other strides"),
    (r"instance_norm", r"f32\[0,", r"no error, but IndexError: select", "The reference fails on no samples"),
    (r"conv3d\.padding|(reflection|replication)_pad3d", r"f32\[(4,3,4,5|2,3,4,5)\](\.cl|, f32\[6,4,2,1,3\]\.cl)", r"^strides",
     "Four dimensions are one sample here, which has no layout with channels last; the reference takes them for images"),
    (r"_foreach_copy", r"\.strided", r"^strides", "The reference copies the memory between the elements, too"),
    (r"_foreach_copy", r", \[\]$", r"same number of tensors", "The reference reads beyond the shorter list"),
    (r"embedding|gather", r"sparse(_grad)?=True", r"^gradient: strides", "A gradient of rows that are not chosen is sparse from Python alone"),
    (r"(embedding|gather)_backward", r", (True|1)$", r"^strides", "A gradient of rows that are not chosen is sparse from Python alone"),
    (r"complex", r"f16", r"is complex32, which is not implemented", "There is no `complex32` in Tenon"),
    (r"pad", r"-\d.*'circular'", r"wrapping around more than once", "More is repeated than the negative padding leaves: the reference copies what nobody wrote"),
    (r"multi(label_)?_?margin_loss(_backward)?", r"", r"only p == 1 and p == 2 supported|expected grad_output of size", UNCHECKED),
    (r"fractional_max_pool[23]d_backward", r"\[\]", r"kernel_size must either be", UNCHECKED),
    (r"_fused_rms_norm", r", \[\], ", r"Expected normalized_shape", UNCHECKED),
    (r"unfold_backward", r"^f\d+\[\], ", r"^IndexError", UNCHECKED),
    (r"logit_backward", r"bool", r"Subtraction, the `-` operator", "Both work on truth values as on whole numbers, or not: `logit` itself refuses them"),
    (r"addbmm_", r"[fciu]\d+\[1?\](=[^,]*)?, ", r"output with shape \[1?\] doesn't match", "The reference makes `self` larger in place"),
    (r"(_index_put_impl_?|index_put_?|_unsafe_index_put|_unsafe_masked_index_put_accumulate)", r", \[\], ", r"^IndexError, not RuntimeError", "Both refuse no indices: Tenon says that one is wanted"),
    (r"(gru|rnn_\w+)\.input|batch_norm", r"^f32\[\], ", r"^IndexError, not RuntimeError", "Both refuse a number: Tenon names the dimension that is not there"),
    (r"linalg_ldl_solve", r"f16", r"^NotImplementedError, not RuntimeError", "Both refuse the dtype; Tenon's exception is a `RuntimeError`, too"),
    (r"_pack_padded_sequence_backward", r"\[\]", r"RuntimeError, not IndexError", "Both refuse sizes without dimensions"),
    (r"lstm\.input", r"\], False, 1, ", r"Expected more weights", "Four weights where there are no biases: the reference drops two without a word"),
    (r"set_\.source_Tensor_storage_offset", r"\.(t|strided)", r"^strides", "Sizes without strides are contiguous; the reference keeps the strides that were there"),
    (r"rrelu_with_noise_functional", r"\.t", r"^strides", "A copy lies as the noise does"),
    (r"rrelu_with_noise|binary_cross_entropy|logspace\.out", r"out=\w+\[(|2,2,3|1,5)\]", r"^shape", "The reference does not resize a given result here; elsewhere it does"),
    (r"(lin|log)space", r", 0, (\d\.\d, )?dtype.*out=larger", r"^shape", "The reference does not resize a given result of no elements, whatever its sizes are"),
    (r"index_select", r"out=f32\[2,6\]\.strides\(0,1\)", r"no error, but RuntimeError: unsupported operation: more than one",
     "A given result that has to be resized gets memory of its own; the reference looks at how it lay before"),
    # What the reference takes without looking at it.
    (r"conv[123]d\.padding|convolution_backward|_convolution(_mode)?", r"", r"^RuntimeError: expected scalar type \w+ but found \w+",
     "With a padding by name, and in gradients, the reference does not look at the dtype of bias and weight, and reads other bytes, or casts"),
    (r"view_as_complex_copy", r"f16", r"no complex dtype", "There is no `complex32` in Tenon"),
    (r"c(half|float|double)", r"", r"^gradient: strides", "The gradient of a real tensor is one of its own, dense; the reference's is a view of complex numbers"),
    (r"chalf", r"", r"Tenon has no complex32", "There is no `complex32` in Tenon"),
    (r"adjoint", r"c64", r"^strides", "Conjugates are computed at once, into a tensor of their own"),
    (r"conj_physical", r"strided", r"^strides", "The reference returns a real tensor itself; Tenon a copy, as the name says"),
    (r"lu_unpack", r"\[1,", r"LU_pivots has other sizes", UNCHECKED),
    (r"(_?linalg_)?(slog)?det", r"expanded", r"^gradient: (strides|values differ)", SINGULAR),
    (r"_linalg_solve_ex", r"expanded", r"gradient: torch.linalg.solve: The solver failed", SINGULAR),
    (r"geqrf", r"c(64|128)\[2,3,3\]", r"values differ", "The last element of a matrix without full rank is rounding; its phase is in `tau`"),
    (r"linalg_lstsq", r"\[1,4,3\], f32\[4,2\]|f64\[1,3,3\], f64\[3,1\]", r"^shape", "The reference takes rows of the right side for a batch of it"),
    (r"linalg_lstsq", r"rcond=0\.5", r"values differ", "What counts as zero is found from the singular values; the reference's default driver estimates it"),
    (r"hinge_embedding_loss", r"(i8|i16|i32|i64|u8)\[3\], ", r"^dtype", "The reference rounds the margin to the integers of `self`"),
    (r"stft\.center", r"\b0,20\]|, 1, 'reflect'|f64\[1,2,20\]", r"", "The reference pads in Python: it takes any truth value, and fails to pad no elements"),
    (r"istft", r"length=(0|-1)", r"no error, but RuntimeError: min\(\)", "The reference fails to find the least of no elements"),
    (r"index_select|embedding|_embedding_bag_dense_backward", r"f32\[(0,[34]|6,0)\]", r"IndexError, not RuntimeError: index_select\(\): self indexing axis",
     "Both refuse it: of one index the reference says that it is out of range, of several that there is nothing"),
    (r"(mse|smooth_l1)_loss_backward", r"\b(u8|i8|i16|i32|i64)\[", r"not implemented for", "The gradient of a whole number: there is none; the reference rounds one"),
    (r"binary_cross_entropy", r"f32\[\]=0.3|out=f32\[0\]", r"^shape", "The reference makes the result, and `out`, in the sizes of one argument, and leaves them so"),
    (r"binary_cross_entropy_backward", r"f32\[1,2,3\]", r"^shape", UNCHECKED),
    (r"nll_loss2d_backward", r"\.cl", r"no error, but RuntimeError: grad_input must be contiguous", "The reference refuses a layout that it chose itself"),
    (r"cosine_embedding_loss", r", (-1|3)$", r"^shape", UNKNOWN),
    (r"native_batch_norm\.out", r"\.(t|expanded)\b.*out=", r"^values differ", "The reference writes a given result of other strides as if it were contiguous"),
    (r"native_batch_norm\.out", r"f32\[1,4,3,2\]", r"running_mean should contain", UNCHECKED),
    (r"_native_batch_norm_legit_no_training", r", -1$", r"values differ by up to nan", "A root of a negative number: NaN in both, in other channels"),
    (r"_foreach_add(cmul|cdiv)\.Tensor", r"c64\[2\]", r"no error, but RuntimeError: value cannot be converted", "Numbers are taken with their imaginary part, as in `addcmul`"),
    (r"avg_pool2d_backward", r"c64", r"^NotImplementedError, not RuntimeError", "Both refuse the dtype; Tenon's exception is a `RuntimeError`, too"),
    (r"histc", r"u8", r"^NotImplementedError, not RuntimeError", "Both refuse the dtype; Tenon's exception is a `RuntimeError`, too"),
    (r"adaptive_avg_pool[23]d", r"\[1,2,3,", r"^RuntimeError: adaptive_avg_pool", "Where the result has one element a channel the reference does not look at the number of dimensions"),
    (r"digamma", r"f32\[(1029,917|812)\]", r"^gradient: values differ by up to \d", "Near its poles the reference's slope is off by a third; Tenon's is exact"),
    (r"linalg_pinv", r"hermitian=True", r"^gradient: values differ",
     "Only one triangle is read, and the gradient is that of the function; the reference's is right for matrices that are Hermitian"),
    (r"special_airy_ai", r"f\d\d\[|i64|bool", r"^values differ by up to \d(\.\d+)?e-0[5-7]", "Between -2.1 and -3.5 the reference has five to seven digits"),
    (r"special_airy_ai", r"f32\[1029,917\]|f32\[812\]", r"^values differ", "The reference's phase has a `float32`'s digits"),
    (r"linalg_householder_product", r"(c64|f32)\[", r"^gradient: values differ by up to \d",
     "Rounding: gradients of some millions, which the reference has fewer digits of"),
    (r"scaled_dot_product_attention", r"f32\[4,3,8\], .*is_causal=True", r"^gradient: values differ by up to [45]\.\d*e-05",
     "Rounding: both are as far from what `float64` gives"),
    (r"ctc_loss", r"f32\[50,16,20\]", r"^gradient: values differ by up to 0\.00", "Rounding: Tenon is five times nearer to what `float64` gives"),
    (r"grid_sample", r"f32\[2,3,345,456\]", r"^values differ by up to 0\.00", "Rounding: both are as far from what `float64` gives"),
    (r"(_?native_)?batch_norm\w*|instance_norm", r"bf16", r"^gradient: values differ by up to 0\.(0|10)", "Rounding: both are as far from what `float64` gives"),
    (r"fmod|remainder", r"bf16", r"^values differ by up to 0$", "The quotient overflows: NaN in the reference's `bfloat16`, not in its `float32`"),
    (r"special_(bessel_[jy][01]|airy_ai)", r"f64", r"^values differ by up to \d\.?\d*e-0[6-9]", "The reference is off by up to 2e-6 in `float64`; Tenon is exact to rounding"),
    (r"celu", r"f64", r"^gradient: values differ by up to \d\.?\d*e-(08|09|10)", FLOAT_CONSTANT),
    (r"linalg_eig(vals)?", r"f64\[2,5,5\]", r"^values differ", "Eigenvalues have no order: the same ones, as another algorithm finds them"),
    (r"fft_ifft", r"f64\[.*out=c64|f32\[.*out=c128", r"no error, but RuntimeError: Found dtype Complex\w+ but expected Complex\w+", CAST),
    (r"(std|var)(\.(correction|dim))?", r"f16\[.*out=(f64|f32|c64)", r"no error, but RuntimeError: std_var_all: Unsupported dtype (BFloat16|Half)", CAST),
    (r"mean(\.dim)?|(special_)?logsumexp|pow\.Scalar", r"c(64|128)\[.*out=(f32|f64)", r"^RuntimeError: result type Complex\w+ can't be cast", DISCARDED),
    (r"std|var", r"out=c64", r"no error, but NotImplementedError: \"std_cpu\" not implemented for 'ComplexFloat'", CAST),
    (r"mean|mean\.out|logsumexp", r"c(64|128)\[.*out=f", r"result type Complex\w+ can't be cast", "The reference drops the imaginary part without a word"),
    (r"lstm\.data", r"bf16", r"values differ by up to 0\.0[1-5]", "Rounding: both are as far from what `float32` gives"),
    (r"_(log_)?softmax_backward_data", r"", r"^RuntimeError: expected scalar type|^IndexError, not RuntimeError: Expected tensor for argument", UNCHECKED),
    (r"unique_consecutive", r"", r"^shape \(7,\), not \(0,\)|values differ|^tuple", "By place the reference's Python takes `return_inverse` for `return_counts`"),
    (r"upsample_\w+\.vec|_upsample_\w+\.vec", r", 1, ", r"RuntimeError, not TypeError", "Both refuse it: a number stands for a list of one, which is then too short"),
    (r"set_\.source_Tensor_storage_offset", r"expanded", r"^strides", "Sizes without strides are contiguous; the reference keeps the strides that were there"),
    (r"unfold_backward", r"", r"^RuntimeError, not ValueError: step is|no error, but RuntimeError: The size of tensor a", "What only gradients call: `unfold` checks its arguments"),
    (r"grid_sampler_[23]d_backward", r"", r"grad_output must look like the result", UNCHECKED),
    (r"affine_grid_generator", r"(u8|i8|i16|i32|i64)\[", r"expected scalar type Float but found \w+|values differ by up to 254", "The reference makes a grid of whole numbers: zeros, but for its corners"),
    (r"_fft_(r2c|c2c|c2r)", r"out=", r"^RuntimeError: Expected out tensor to have dtype", "Operators that others are made of: a given result has the dtype of the result"),
    (r"_fft_c2r", r"c128\[4\], \[0\], 0, 3", r"values differ", UNCHECKED),
    (r"gradient\.tensorarray", r"f64\[5\]", r"values differ by up to 1\.\d*e-07", "Rounding: `self` has `float32`"),
    (r"ldexp\.Tensor", r"i64", r"gradient: values differ", "The reference's gradient of a negative whole exponent is 0: it rounds the power"),
    (r"_embedding_bag_backward", r", (True|1), \S+$", r"^strides", "A gradient of rows that are not chosen is sparse from Python alone"),
    (r"_embedding_bag(_per_sample_weights)?_backward", r"\.(strided|expanded)", r"no error, but RuntimeError: Expected contiguous tensor", MORE),
    (r"_embedding_bag(_dense|_per_sample_weights)?_backward", r"",
     r"^(RuntimeError: (embedding_bag_backward: |index 2 is out of bounds)|IndexError: (embedding_bag_backward: |index out of range|Dimension out of range))", UNCHECKED),
    (r"_?embedding_bag(\.padding_idx)?", r"sparse=True|, (True|1), None, False, ", r"^gradient: strides", "A gradient of rows that are not chosen is sparse from Python alone"),
    (r"_foreach_norm\.Scalar|_log_softmax_backward_data|binary_cross_entropy(_with_logits)?|elu_backward|frobenius_norm\.dim|(smooth_l1|huber)_loss_backward|linalg_(lstsq|(matrix_|vector_)?norm)(\.str_ord)?|"
     r"pairwise_distance|pow\.Tensor_Scalar|soft_margin_loss|softplus_backward|hardswish_backward|binary_cross_entropy_backward|(special_)?(sinc|logit)|linalg_householder_product|orgqr|triplet_margin_loss|_foreach_max|max|min|"
     r"(nan)?median|dist|norm\.\w+|(hard|soft)shrink_backward|float_power\.\w+", r"\.t\b|f64\[2,3\], c64|c64\[2,3\], f64", r"^gradient: strides",
     "A gradient that `autograd.grad` hands out lies in memory as its formula left it; `.grad` has the layout of its tensor in both"),
    (r"convolution_backward|(_?linalg_)?(lu_solve|solve(_ex|_triangular)?|matrix_exp)|ormqr|fft_[ir]*fft[2n]?|fft_hfft[2n]?|istft|polar|block_diag|bilinear|take|masked_select|einsum|addbmm|_euclidean_dist|index_copy_?|tensordot|linalg_lstsq|"
     r"matrix_exp|sinc|_softmax_backward_data", r"", r"^gradient: strides",
     "A gradient that `autograd.grad` hands out lies in memory as its formula left it; `.grad` has the layout of its tensor in both"),
    (r"linalg_lu_factor", r"", r"^_LinAlgError, not RuntimeError", "A matrix without an inverse: `LinAlgError`, a `RuntimeError`, as in the reference's other factorizations"),
    (r"embedding(_dense)?_backward", r", (True|1)(, False)?$|scale_grad_by_freq=True", r"^gradient: values differ",
     "The reference's gradient of this gradient takes no notice of `scale_grad_by_freq`"),
    (r"copy", r"\.strided", r"^strides", "The reference copies the memory between the elements, too"),
    (r"(linalg_)?(lu_solve|inv|inverse|solve(_triangular)?|householder_product)|cholesky_inverse|orgqr|ormqr|soft_margin_loss|_fft_r2c|fft_\w+|lu_solve|qr|geqrf|triangular_solve|linalg_(cholesky|eigh?|ldl_factor|lstsq|lu_factor)", r"out=(\w+\[(0|[\d,]*)\]|larger)$", r"^strides",
     "A given result that has to be resized is row-major; the reference lays it out as its own would be"),
    (r"poisson_nll_loss|binary_cross_entropy_with_logits", r"f32\[.*f64\[", r"values differ by up to \d\.?\d*e-0[89]", "Rounding: `self` has `float32`"),
    (r"pow\.Scalar", r"^1, bool\[3\], out=bool", r"result type Long can't be cast to the desired output type Bool",
     "The reference fills with ones where the base is 1, whatever the dtypes are"),
    (r"_scaled_dot_product_flash_attention_for_cpu|lstm\.input", r"^bf16", r"^gradient: values differ by up to 0\.03",
     "Rounding: `bfloat16` has eight bits, and the reference rounds to it between steps"),
    (r"_foreach_powsum\.Scalar", r"(i64|bool)\[0\]", r"not implemented for '(Long|Bool)'", "Tenon checks sizes and dtypes also where there are no elements"),
    (r"re(flec|plica)tion_pad3d_backward", r"f32\[2,3,4,5\]\.cl", r"^strides",
     "Four dimensions are one sample here, which has no layout with channels last; the reference takes them for images"),
    (r"linalg_matrix_rank\.tol_tensor", r"out=i64\[3,2\]\.(t|strided)$", r"^strides", "The reference gives a result that is given, and fits, other strides"),
    (r"(smooth_l1|huber)_loss_backward", r"\.t", r"^strides", "A gradient lies as its arguments do; the reference's as the expanded gradient of the result"),
    (r"adaptive_avg_pool2d", r"\.cl, \[1,1\]", r"^gradient: strides", "The gradient of a channels-last image is one"),
    (r"gru_cell", r"\.t\b", r"^strides", "A new state lies in memory as the gates do; the reference's as the old state does"),
    (r"linalg_matrix_power", r"^f32\[2,3,3\], -1$", r"^_LinAlgError", "A matrix of this sample has no inverse; rounding leaves the reference a last pivot that is not 0"),
    # Sizes of gradients, which only backward passes give.
    (r"native_(layer|group|batch)_norm(_backward)?|_native_batch_norm_legit\S*|_[cp]dist_\w+ward|grid_sampler_[23]d_backward|_fused_rms_norm|"
     r"_?log_softmax_backward_data|_log_softmax_backward_data|unfold_backward|max_pool3d_with_indices_backward|"
     r"_adaptive_avg_pool2d_backward|reflection_pad3d_backward|cumulative_trapezoid\.x", r"",
     r"^RuntimeError: (grad|mean and rstd|running_mean should|weight should|Expected (weight|X\.numel|tensor for argument|a tensor of dimension)|"
     r"_[cp]dist_backward|pdist only supports 2D|Given normalized_shape|The size of tensor a|reflection_pad3d_backward|cumulative_trapezoid)", UNCHECKED),
    (r"cholesky|linalg_cond|(reflection|replication)_pad1d_backward|batch_norm|randn(\.generator)?|bincount|adaptive_(max|avg)_pool[123]d|"
     r"repeat_interleave\.\w+|lu_unpack|index_add_?|bernoulli_?\.Tensor|cumulative_trapezoid\.dx|adaptive_max_pool2d_backward", r"\[(\d+,)*0\b", r"^(RuntimeError|NotImplementedError): ",
     "Tenon checks sizes and dtypes also where there are no elements"),
    # Forward mode.
    (r"cholesky_(solve|inverse)|triangular_solve", r"", r"^tangent: values", "The reference counts the triangle that is not read; the tangent here is the slope"),
    (r"(_?linalg_)?(eigh|svd)", r"", r"^tangent: values", "Vectors are known up to a factor of size 1, and so are their tangents"),
    (r"_foreach_(maximum|minimum)\..*|_foreach_add_?\.Tensor|pow\.Tensor_Tensor", r"", r"^tangent: values",
     "The reference's tangent is not the slope of its result, as difference quotients show; Tenon's is"),
    (r"kl_div|logsumexp", r"=0,|f32\[0", r"^tangent: values differ by up to nan", "Where the result has no slope: NaN in one, not in the other"),
    (r"nll_loss(2d)?_backward|native_(layer|batch)_norm_backward", r"", r"^(tangent: values|one tangent is None)",
     "What only gradients call: total weights, means and deviations follow the input, and have no tangent of their own"),
    (r".*", r"", r"^tangent: dtype", "A tangent has the dtype of its tensor"),
]

WORDS_OF_LIBRARY = "The reference's words are those of a library or container behind it"
NAMES = "Tenon names the argument and its value, where the reference finds an overflow later"
FIRST = "Both refuse it; Tenon checks this before it computes, the reference meets something else on the way"

# Operators with overloads in PyTorch that take the name of a dimension.
NAMED = (r"(argsort|cat|concat|concatenate|cummax|cummin|cumprod|cumsum|diagonal|flatten|gather|index_(add|copy|fill|select)|kthvalue|log_softmax|logcumsumexp|logsumexp|max|mean|"
         r"median|min|mode|nanmedian|prod|scatter(_add)?|select|softmax|sort|squeeze|std|std_mean|sum|transpose|unbind|unflatten|var|var_mean|all|any|size|stride)_?(\.\w+)?")

# (operators, what Tenon says, what PyTorch says; the reason)
TEXTS = [
    (r"(lin|log)space\.\w+", r"inferred dtype c10::complex<float> can't be safely cast", r"value cannot be converted to type float without overflow",
     "Both refuse complex ends of a real result: Tenon in the words that the reference has for numbers"),
    (r".*", r"", r"INTERNAL ASSERT FAILED", "The reference fails an internal assertion"),
    (r"convolution.*", r"", r"primitive descriptor|itensor_view_from_dense|MKLDNN tensor", WORDS_OF_LIBRARY),
    (r"conv.*", r"expected scalar type", r"Input type \(torch\.FloatTensor\)", "The reference's words depend on the kernel that it would choose"),
    (r"_?conv.*", r"Input type \(torch\.HalfTensor\)", r"expected scalar type Half", "The reference's words depend on the kernel that it would choose"),
    (r"_convolution.*", r"Input type \(CPUComplex", r"not implemented for 'Complex", "The reference's words depend on the kernel that it would choose"),
    (r"stft\.center", r"but got: \[2, 1, 0\]", r"but got: \[1, 2, 0\]", "The reference pads in Python: its message shows other sizes"),
    (r"lstm\..*", r"", r"MatrixRef|ArrayRef", WORDS_OF_LIBRARY),
    (r"(_foreach_)?(clamp|maximum|minimum)_.*", r"output type \w+$", r"output type (long int|\w+)$", "The reference has the C++ type's name here, the dtype's elsewhere"),
    (r"stack\.out", r"torch\.stack", r"torch\.cat", "Tenon names the operator that was called"),
    (r".*", r"", r"attempted to run this operator with Meta tensors", "The reference tells how to write a kernel"),
    (r"rms_norm", r"\[\*, ", r"\[\*", "The reference's text lacks a comma"),
    (r"_foreach_copy", r"same number of tensors", r"", "The reference reads beyond the shorter list"),
    (r"_adaptive_avg_pool2d|as_strided|expand|resize_", r"", r"overflow", NAMES),
    (r"addbmm", r"must be a 3D tensor", r"", FIRST),
    (r"lstm\.data|_pack_padded_sequence_backward|_pad_packed_sequence", r"batch_sizes", r"", FIRST),
    (r".*", r"^\"\w+\" not implemented for '\w+'$", r"^\"\w+\" not implemented for '\w+'$",
     "Both have no kernel for the dtype; the kernel has another name, as operators are made of others"),
    (NAMED, r"\(\): argument '\w+' (\(position \d\) )?must be \S.*, not \w+|missing \d required positional|takes .*positional argument|unexpected keyword",
     r"received an invalid combination of arguments", "The reference has overloads for names of dimensions, and lists them all"),
    (r"(multiply|divide|subtract|floor_divide|true_divide|div|bmm|mm|addmm|baddbmm)_?(\.\w+)?", r"\(\): argument '\w+' \(position \d\) must be Tensor, not \w+",
     r"received an invalid combination of arguments", "The reference has overloads for numbers and for results in `float32`, and lists them all"),
    (r".*_(\.\w+)?", r"^result type \w+ can't be cast", r"^unsupported operation: more than one element", FIRST),
    (r"rrelu_with_noise(_|_functional)?", r"uniform_ expects|out of bounds for float", r"Expected from <= to", "The words are those of `uniform_`"),
    (r"_foreach_(addc(mul|div)\.Tensor|copy_)", r"same number of tensors", r"at least one tensor", FIRST),
    (r"replication_pad[123]d", r"padding size is expected to be \d, but got: 0", r"padding size is expected to be \d", "The same words; Tenon adds what it found"),
    (r"_fft_(r2c|c2c|c2r)", r"wants at least one dimension", r"ArrayRef", WORDS_OF_LIBRARY),
    (r"addmm_|masked_scatter_", r"must match the (existing )?size", r"Bad in-place call|The expanded size of the tensor", "Both refuse the sizes; the words are those of what is computed first"),
    (r"native_batch_norm|batch_norm", r"mixed dtype", r"not implemented for", "Both refuse the dtype, one before another check"),
    (r"(clamp|clip)\.Tensor", r"not supported for complex", r"not implemented for 'Complex", "Both refuse complex numbers; the words are those of `clamp` with numbers"),
    (r"_?upsample_\w+\.vec", r"It is expected (input|output)_size equals to", r"== spatial_dimensions to be true", "Both refuse the sizes; Tenon says which it wants"),
    (r"addmv_|addmm_|masked_scatter_", r"expected scalar type|number of sizes provided|Bad in-place call", r"Bad in-place call|number of sizes provided",
     "Both refuse it; the words are those of what is computed first"),
    (r"scaled_dot_product_attention", r"without overflow", r"expected scalar type Float", FIRST),
    (r"(arctan2|atan2)_", r"can't be cast", r"doesn't match the broadcast shape|The size of tensor a", FIRST),
    (r"(_unsafe_)?index_put_?", r"argument 'values'", r"expected Tensor as element 0", FIRST),
    (r"frobenius_norm\.dim|triangular_solve", r"^linalg\.", r"^(norm\(\)|Incompatible matrix sizes)", "The words are those of the operator that does it"),
    (r"ormqr", r"safely castable", r"to have the same dtype", "Both refuse the dtype of a given result"),
    (r"can_cast", r"\"from\", \"to\"", r"\"from_\", \"to\"", "The argument is called from; from_ is taken, too"),
    (r".*_backward(_data)?(\.\w+)?", r"", r"", "What only gradients call: each checks sizes and dtypes in its own order"),
    (r".*", r"^Dimension out of range \(expected to be in range of \[-1, 0\]", r"^Dimension specified as -?\d+ but tensor has no dimensions",
     "Of numbers some operators of the reference say the one, some the other"),
    (r".*", r"^The size of tensor a \((\d+)\) must match the size of tensor b", r"^The size of tensor a \((\d+)\) must match the size of tensor b",
     "The same words: which argument is called a depends on what an operator is made of"),
    (r".*", r"^Found dtype \w+ but expected \w+", r"^Found dtype \w+ but expected \w+", "The same words: which argument comes first depends on what an operator is made of"),
    (r".*", r"can't be cast to the desired output type|^Expected out tensor to have dtype", r"[Ee]xpect\w* .*(out|result|mantissa|exponent)|can't be cast|Found dtype|not implemented for|"
     r"expected scalar.type|safely castable|must be of same type as input|must be of scalar type",
     "Both refuse the dtype of a given result"),
    (r".*", r"not implemented for|[Ee]xpected a floating|[Ee]xpected scalar type|only supports|doesn't handle types|must have a floating|must have the same dtype",
     r"not implemented for|[Ee]xpected a floating|[Ee]xpected scalar type|only supports|Got (Long|Byte|Bool|Half)|to have the same dtype|should be the same|Only supports",
     "Both refuse the dtype, one before another check"),
    (r"(lstm|gru|rnn_\w+)(\.\w+|_cell)?|_pad_packed_sequence|_pack_padded_sequence", r"", r"", FIRST),
    (r"meshgrid(\.indexing)?", r"a tensor of", r"", "The reference prints the whole tensor"),
    # What both refuse, where one of several checks has to be the first.
    (r"_scaled_dot_product_attention_math|linalg_solve(_ex)?|linalg_tensorsolve|native_group_norm|affine_grid_generator|_pdist_forward|addr_|baddbmm_|matmul\.out|"
     r"_?native_batch_norm(_legit)?\.out|_native_batch_norm_legit(\.no_stats|_no_training)?|instance_norm|_foreach_addc(mul|div)_\.Tensor|max_unpool3d|"
     r"gradient\.tensorarray(int)?|mean|set_\.source_Tensor_storage_offset|alpha_dropout_?|feature_alpha_dropout_|soft_margin_loss|convolution|_int_mm|_pad_enum", r"", r"", FIRST),
    (r"_fft_(r2c|c2c|c2r)", r"", r"shape '|cannot reshape tensor of 0 elements", "The reference fails to reshape what it would transform"),
    (r"fft_ihfft", r"^Found dtype", r"expects a complex output tensor", "Both refuse the dtype of a given result"),
    (r"expand_copy", r"", r"overflow", NAMES),
    (r"ctc_loss\.\w+", r"got 4-dim", r"got 5-dim", "The reference counts a dimension that it added"),
    (r"conv_transpose1d", r"input shape: \[\d, 4, 0\]", r"input shape: \[\d, 4, 1, 0\]", "The reference shows the sizes with a dimension that it added"),
    (r"unbind_copy\.int|_local_scalar_dense|_?embedding_bag|_neg_view_copy|_euclidean_dist|_add_relu\.Tensor", r"", r"",
     "The words are those of the operator's kin: `unbind`, `item`, other modes of `embedding_bag`, `neg`, `cdist`, `relu`"),
    (r"stft(\.center)?", r"^stft\(", r"^stft\(", "The reference pads in Python: its message shows other arguments"),
    (r"istft", r"with 2 or 3 dimensions, but got 4", r"with 3 or 4 dimensions, but got 5", "The reference counts a dimension that it added"),
    (r"unflatten\.int", r"at least 1 dimension", r"^unflatten got an unexpected error", "The reference fails on its way, and says that it did not expect it"),
    (r"_fused_rms_norm", r"^Given normalized_shape", r"^The size of tensor a", FIRST),
    (r"index_reduce_?", r"^index out of range in self", r"^select\(\): index 0 out of range", FIRST),
    (r"heaviside", r"different dtypes", r"complex tensors", "Both refuse the dtype of a given result"),
    (r"_fft_c2r", r"^Invalid number of data points", r"MKL FFT error", WORDS_OF_LIBRARY),
    (r"range(\.step)?", r"invalid combination", r"missing 2 required positional", "The reference has one signature here, Tenon two"),
    (r"rrelu_with_noise", r"can't be cast", r"^expected scalar type", "Both refuse the dtype of a given result"),
    (r"ldexp_", r"^output with shape", r"can't be cast", FIRST),
    (r"gradient", r"found at least two devices, (meta and cpu|cpu and meta)!", r"^torch\.gradient expected each tensor to be on the same device", "The words are those of every operator"),
    (r"pad", r"^Padding value causes wrapping", r"refer to a single memory location", "The reference finds it while it writes"),
    (r"sub\.Scalar", r"^(Boolean alpha|Subtraction)", r"^(Boolean alpha|Subtraction)", "Two numbers: the reference takes them in the order of an older call, the factor first"),
    (r"split\.\w+|unique_consecutive", r"", r"^split_with_sizes\(\)|argument 'dim' must be", "The reference goes through Python here, to another function"),
    (r".*", r"^(descriptor '\w+' (for|of|requires a) 'Tensor'|unbound method Tensor\.)", r"TensorBase", "The same words: methods stand in `Tensor` itself"),
    (r"take_along_dim", r"out of bounds", r"ZeroDivisionError", "The reference divides by zero"),
]


# How many calls each rule explained, by its place in its list.
COVERED = collections.Counter()


def covering(rules, op, *texts):
    """The reason of the first rule that fits."""
    for i, (ops, *wanted, reason) in enumerate(rules):
        if re.fullmatch(ops, op) and all(re.search(pattern, text) for pattern, text in zip(wanted, texts)):
            COVERED[rules is TEXTS, i] += 1
            return reason
    return None


def rules_used():
    """(how many calls, a rule) of every rule, those that explain most first."""
    everything = [(COVERED[texts, i], rule) for texts, rules in ((False, RESULTS), (True, TEXTS)) for i, rule in enumerate(rules)]
    return sorted(everything, key=lambda entry: -entry[0])


def reason_for(op, text, found):
    return covering(RESULTS, op, text, found)


# What the reference adds to a text.
MORE_WORDS = re.compile(r"\s*\(Could this error message be improved.*|\s*File an issue at.*|, please report a bug to PyTorch.*")


def words_of(text):
    """Of a list of arguments: the order of those by name is left open."""
    return sorted(re.findall(r"[^\s,()]+", text))


def reason_for_text(op, mine, theirs):
    if MORE_WORDS.sub("", theirs) == mine:
        return "The same words; the reference goes on with whom to write to"
    if " - got (" in mine and words_of(mine) == words_of(theirs):
        return "The same words: arguments by name come in another order"
    return covering(TEXTS, op, mine, theirs)
