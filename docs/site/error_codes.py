"""Every code of an error (E...) or warning (W...) with its meaning and remedy; source of the page docs/errors.md.

A code names one kind of problem, and a message describes one instance. Tests compare this table with the source.
"""

import re

_TITLES = "Command line and environment, INI, Network, ONNX, Data and weights, Quantization, Memory, Export, Compiled export"
FAMILIES = dict(zip("012345678", _TITLES.split(", "), strict=True))
"""Title of each family of codes by their first digit."""

_TEXTS = """
E001: missing folder of the installation | reinstall n2d2py, or set N2D2PY_DATA to a checkout
E002: unknown option | use the suggested option; `n2d2py -h all` lists all of them
E003: missing value of an option, or a value of the wrong type or range | give a value as the message says
E004: invalid mode of an option | use one of the listed modes
E005: option of N2D2's training or benchmarks that n2d2py does not support | remove the option; use -learn-epoch N to train
E006: no model, or several models | give one INI, ONNX or TFLite file
E007: conflicting options, or an option that requires another one | remove or add the named option
E008: unsupported type of the model file | give an .ini, .onnx or .tflite file
E010: interruption by Ctrl-C | run the command again; the previous export is unchanged
E012: read or write error of the operating system | check the path, its permissions and the free space
E013: exhausted memory | use fewer samples, or a smaller model
E020: plug-in folder that does not exist or declares nothing | correct -plugin
E021: Python file of a plug-in that cannot be loaded | correct the named line
E022: incomplete declaration in a plug-in | follow the message; see docs/reference/plugins.md
E023: name of a plug-in that is already in use | choose another name
E024: layer that an operator of a plug-in refuses, or an exception in its Python code | correct the layer or the plug-in
E025: -new-operator with an invalid name or an existing folder | give a CamelCase name and a new folder
E099: defect of n2d2py | run again with -verbose and report the defect
E101: missing or unreadable file | correct the path or its permissions
E102: file that is not UTF-8 text | save it as UTF-8
E103: missing closing quote | close the quotes
E104: line that is not name=value | write name=value; comments begin with ; or #
E105: incomplete section header | write [name]
E106: section that is declared twice | rename or remove one of them
E107: base section that is not declared before its use | declare the base section first
E108: missing required property | add the property
E109: value of the wrong type | give a value of the named type
E110: undefined macro ${NAME} | define $NAME, or set the environment variable
E111: definitions that form a cycle | give one of them a literal value
E112: expression $(...) that is malformed, not allowed or without value | correct the expression
E113: expansion above the size limit | simplify the definitions
E114: ${ or $( without a closing bracket | close the bracket
E115: reference [section] without a property | write [section]Property
E116: missing template | put it next to the INI file or in N2D2_MODELS
E117: template outside the network's folder, too large or recursive | move it, or remove the recursion
E118: malformed directive in a template | correct the directive
E119: reference to a missing section | add the section, or correct its name
E120: template parameter that is missing, not an integer or reserved | give the parameter, or rename it
E121: invalid line in a file of export parameters | write name=value or [layer]
E122: value out of range, or not one of the choices | give an allowed value
E123: too many sections in the document | reduce the loops of the templates
E124: unsupported key of N2D2 that changes results | remove the key, or follow the alternative in the message
E201: input of an unsupported rank | correct the layer before it
E202: convolution weights that do not match the input channels | correct NbOutputs, the groups or the input
E203: window larger than the padded input | use a smaller kernel, or a larger input
E204: fully connected weights that do not match the input size | correct the layer before it
E205: element-wise layer with inputs of different shapes | use inputs of equal shape
E206: concatenation of inputs with different widths or heights | use inputs of equal width and height
E207: padding that crops the whole input | crop less
E208: reshape that changes the number of elements | keep the number of elements
E209: transposition that moves the batch axis | keep the batch axis in place
E210: unpooling that does not match the pool of its ArgMax | name the max pool to reverse
E211: window dimensions that are not X and Y | give X and Y
E212: layer without kernel dimensions | add the kernel dimensions
E213: invalid channel mapping | choose a number of groups that divides the channels, or a matrix of the right size
E215: unpooling that mixes channels, or a pool output without an input channel | correct the Mapping keys and NbOutputs
E216: NbOutputs that differs from the number of input channels | set NbOutputs to the number in the message
E217: wrong number of coefficients in an element-wise layer | give one coefficient, or one per input
E218: softmax groups that do not divide the channels | choose a divisor of the number of channels
E219: target of a missing layer | name an existing layer
E220: unsupported type of target | use TargetScore
E221: network without layers | add sections with Input= and Type=
E222: spiking model | use Model=Frame
E223: Input that is not a layer | correct the name
E224: cycle of layers | remove one of the inputs
E225: empty Input | name a layer or sp
E226: unsupported layer type | use a supported type; see docs/layer_types.md
E227: ONNX section with Transpose=1 whose output is a feature map | use layers of Type=Transpose before and after the
    section
E229: layer with too many parameters or connections | reduce NbOutputs or the input dimensions
E231: layer type that can be described but not computed | end the network before this layer
E232: OutputsRemap that does not name each output once | give pairs such as 1:2,0:2
E233: input region outside the input | reduce or move the region
E234: transformation that cannot be a layer, or has invalid values | apply it to the stimuli, or correct its values
E240: tensor without elements, or with too many | correct its dimensions
E241: network with too many layers | reduce the loops of the templates
E242: keys of quantization-aware training (QAT) in a layer that does not support them, or keys of early N2D2 versions | use
    QWeight in layers with weights, and QAct in layers with an activation
E243: index outside a tensor | correct the layer before it
E244: feature map or channels that are not divisible into blocks | correct the layer before it
E245: edit or pass from Python that does not fit the graph | name a layer of the model, and give its constants
E301: missing or unreadable ONNX or TFLite file | correct the path
E302: damaged or invalid ONNX or TFLite file | export or download the model again
E303: unsupported ONNX opset | export the model with an opset from 7 to 28
E304: external data that are missing, too short or outside the model's folder | put the data file next to the model
E305: unsupported input of an ONNX or TFLite model | export the model with float inputs of known shape
E306: ONNX weights that are not finite or not numbers | train or export the model again
E310: unsupported ONNX nodes or TFLite operators, one line per kind | replace them by supported operators, or leave them out
    with Ignore
E311: missing or unconnected outputs of an ONNX model | correct the outputs
E312: layer name used in both the INI and the ONNX graph | rename the section
E313: inputs that do not match the ONNX section | correct Size, NbChannels and Input
E314: ONNX node that does not conform to its operator | export the model again, or check it with onnx.checker
E315: AIMET encodings that are invalid or belong to another model | export the model and its encodings again
E316: States or Constants that do not match inputs and outputs of the model | follow the message
E317: shape inference that exceeds its time or memory limit | export the model again
E320: missing package onnx, onnxruntime or cv2 (OpenCV) | pip install 'n2d2py[onnx]' or 'n2d2py[opencv]'
E321: file that ONNX Runtime cannot run | check it with onnx.checker
E401: missing or unreadable data | correct DataPath, or the path in the option
E402: damaged data file, or one of another format | download or write the file again
E403: image that cannot be decoded | remove or replace the image
E404: unknown database type | use the suggested type
E405: unknown transformation | use the suggested transformation
E406: unsupported feature of databases or stimuli providers | remove the key
E407: stimuli of another size than the network input | add a transformation, or correct the size
E408: transformation that fails on a stimulus | follow the message
E409: invalid partition into sets | give fractions or numbers within the whole
E410: malformed labels, or labels of other data | correct the labels
E411: missing input section, or an unsupported input size | give SizeX, SizeY and NbChannels
E412: malformed line in a LabelsMapping | write a label, a blank and an output
E413: label without a line in the LabelsMapping | add a line for the label, or a line default
E414: array of an unsupported type or shape | store the array as the message says
E415: stimuli of different or unsupported types | store all stimuli in one type
E416: empty data set | correct the path and its filters
E417: invalid value of a range or transformation | give a valid value
E418: stimulus with NaN or infinity | remove or correct the stimulus
E419: LoadMore of a section that is already loaded | remove this LoadMore
E420: missing weights | correct -w
E421: layer whose weights are missing | give the right -w, or -w-ignore
E422: weights file that is damaged or not numeric | write the file again
E423: weights of the wrong size or shape | use the weights of this network
E424: weights that are not finite | train again, or restore the weights
E425: invalid trained quantizer: the clipping value or step is not positive, or weights are not on the quantization grid |
    check the training, and the Range of the layer
E430: training without PyTorch | pip install n2d2py[train]
E431: network, data or solvers that cannot be trained | follow the message, or train elsewhere and give the weights
E432: loss that is not finite | use a smaller learning rate
E433: missing or damaged checkpoint, or a checkpoint of another network | remove -learn-resume
E434: worker process of -learn-workers that died | give a smaller -learn-workers, or 0
E451: label above the number of outputs | correct the network, or set LabelsMapping
E452: target on an output that is not a vector of classes | put the target on the layer with one value per class
E453: outputs with NaN or infinity | check the weights and the preprocessing
E454: table without pandas, or sampler without Optuna | pip install pandas, or 'n2d2py[sweep]'
E455: missing or unreadable tensors of a TargetCompare | correct DataPath, Matching and TargetFormat
E460: -post that does not fit the model | correct its kind, or choose the outputs by -outputs
E501: -calib-reload without a previous calibration | calibrate first
E502: damaged calibration statistics | calibrate again
E503: calibration statistics of another network, other data or another pipeline | calibrate again
E504: tensor with NaN or infinity during calibration | check the weights and the input range
E506: unsupported precision | use 8, 16, -16, -32 or -64
E507: integer export without calibration | add -calib N
E508: empty calibration set | add a [database], or give -calib-data
E509: empty test set | add a [database], or give labelled -calib-data
E510: operator without integer arithmetic | export with -nbbits -32
E511: activation that cannot be fused into an integer layer | declare the activation as a separate layer
E513: sample number above the size of the test set | give a smaller number
E514: partly quantized model | quantize the states of the model too, or calibrate the float model
E516: histogram of a tensor that was not calibrated | use a listed tensor, or calibrate the model
E519: weights above the float16 range | export with -nbbits -32
E520: flash budget below the minimum size | allow more bytes, or use a smaller model
E521: RAM budget below the minimum size | allow more bytes, or use a smaller input
E522: float layers in an integer export with -strict | set Quantize=0 where this is intended, or remove -strict
E602: malformed memory graph | correct the memory graph
E603: memory of another form in Memories | follow the message
E604: memory plan that overwrites live bytes; the checker found this defect | report the defect
E605: memory plot for a target that places memory itself | read the report
E606: OptimizeOptimal without ortools | pip install ortools, or use OptimizeOverlap
E607: memory budget below the minimum size | raise the budget, or use the suggested settings
E608: conflicting settings of the memory planner | remove one of them
E700: unknown type of export | use a listed type
E701: layer without a kernel in the export | remove or replace the layer
E702: softmax over channels in an integer export | remove the softmax, or export with -nbbits -32
E703: tensor of an unsupported rank | use tensors with channels, height and width
E704: model without a layer to export | correct the outputs of the model
E705: export parameter that the export does not support | give another value
E706: model with states in an export without states | use CPP or CPP_MCU, or States=none
E707: -app of another kind than the input of the model, or for an export without applications | choose the kind that the
    message names
E711: file or folder at the path of the export that is not an export | remove it, or choose another folder with -o
E712: export folder that is not writable | choose another folder with -o, or change the permissions
E713: disk full during the export | free some space, or choose another folder with -o
E714: exporter plug-in that cannot be loaded, or several with one name | repair or uninstall its package
E719: export of another model, or with edited or added files | add -force to replace it, or choose another folder with -o
E721: missing package of an export | install it with the named extra
E730: unreadable figures of an export | give a folder written by this version
E801: missing make or compiler | apt install make g++, or set CXX
E802: export that does not compile | read the named log
E803: library that cannot be used | build or export again
E804: arrays that do not match the inputs of the exported model | follow the message
E805: folder that is not a C++ export | give the folder written by -export CPP
E806: export without the description of its model | export again
E807: export folder that is not writable | copy the export to a writable folder
E808: tile sizes that cannot be timed | correct -tune-command
E810: compiled export that fails to build or run | install a working g++, or remove -test
E811: compiled export with the wrong number of results, which is a defect | report the defect
E812: compiled export with other values than Python, which is a defect | report the defect
E813: worker that died in every attempt | use fewer workers, or a machine with more memory
E814: unreachable cluster | pip install 'n2d2py[cluster]'; start 'dask scheduler'; correct -cluster
W011: options without effect in this combination | remove the options
W101: property that is given twice; the last value is used | remove one of them
W102: unknown key; it is ignored | correct its name, or remove it
W103: real number that is read as an integer | write the number without a fraction
W104: trailing blanks after a continuation backslash | remove the blanks
W105: backslash at the end of the file | remove the backslash
W106: comment that continues on the next line | remove the backslash of the comment
W107: parameters of a layer that the network does not have | correct the layer name, or remove the parameters
W108: keys of N2D2 without effect here (training, spiking models, images, ...); results are the same | remove the keys to
    avoid the warning
W109: export parameter without effect in this export | remove the parameter
W213: outputs without a connected input | correct the Mapping keys
W219: target of a missing layer, with -describe | name an existing layer
W226: layer that can be described but not run | follow the message
W227: Softmax after a QAct that can make classes equal | train the last layer without QAct
W303: opset newer than the tested ones | compare the results with ONNX Runtime
W304: Ignore without a matching node | name the first output of a node
W305: ONNX input that receives another size than declared | correct the size, or set IgnoreInputSize=1
W306: encodings of tensors that the model does not have | give the encodings exported with this model
W307: open batch of a network that mixes its samples | export the model with batch 1, or add -input-shape with a 1 in front
W401: INI without a database | add a database, or give -calib-data
W402: random stimuli | use real data
W403: unknown sub-section of the input; it is ignored | correct its name
W404: files with a label that has no name | move the files, or set IgnoreMasks or LabelName
W405: line of a LabelsMapping for a missing label | correct or remove the line
W406: stimuli of different sizes | add a RescaleTransformation before
W407: CompositeStimuli=1 with one label per stimulus | give pixel-wise labels, or remove CompositeStimuli
W408: -calib-data that are used without the transformations of the INI | give images or bytes without -input-range to apply
    the transformations
W413: pattern of IgnoreMasks that matches no file and no folder | begin the pattern with */, or remove it
W409: float model that scores no better than chance | check the preprocessing: -mean, -std, -scale, -bgr
W410: labels that are off by one class | number the labels like the outputs, including a background class
W411: data outside the declared range, or steps of a sensor that do not fit | scale the data, or correct the range
W412: class folders with numeric names, sorted as text | keep them for models from torchvision or Keras; otherwise give
    -class-names
W414: calibration on one sample, or on equal ones | calibrate on some hundred samples like those in use
W415: images with alpha or an EXIF rotation, CMYK images, or gray ones among color ones | convert the images to one mode
W420: layers with random weights, as no weights are given | give -w
W421: stored quantized weights that do not match the stored float weights | use both files from one training
W422: quantizer keys without a quantizer in the layer; they have no effect | give QWeight or QAct, or remove the keys
W430: unsupported transformation of the Learn set; training ignores it | remove the transformation
W431: missing initial clipping value of SAT | set QAct.Alpha
W502: factor that the rescaling mode cannot represent; another mode is used | no action is required
W503: option without effect on a pre-quantized model | remove the option
W504: integers that score much less than floating point | raise the precision of the named layers
W505: integer Concat with inputs of very different ranges | set QuantBits=16 or Quantize=0 for this layer
W506: padding with a constant far outside the range of the tensor | pad with a value near the range, or set Quantize=0
W507: layers that compute in floating point in an integer export without Quantize=0 | read the table; set Quantize=0 where
    this is intended
W508: integer output that deviates strongly from floating point | apply the named remedy, which was tried on the same
    samples
W509: dynamically quantized model (quantize_dynamic) that is exported in floating point, as there is no calibration | give
    -calib-data for integers, or -nbbits -32
W704: export without the conversion of frames or sounds, or the post-processing, that the model needs | do it in the
    application, or use -export CPP or CPP_MCU
W706: results of MLPerfTiny that can be negative, which the score of MLCommons' runner does not expect | end the model with
    Softmax
W801: missing compiler; the compiled export is not tested | install g++ and make
"""
"""By code its meaning and, after the bar, the general remedy."""

_TEXT = re.compile(r"^(\w+): (.*) \| (.*)$", re.MULTILINE)
CODES = {code: (meaning, remedy) for code, meaning, remedy in _TEXT.findall(_TEXTS.replace("\n    ", " "))}
"""Code -> (meaning, general remedy)."""
