"""Sections of every type of layer, with the fewest keys and with many, right and wrong ones."""

CONFIG = "ConfigSection=c\n[c]\n"
LAYERS = [
    *(f"Type=Activation\nNbOutputs=4\nActivationFunction={name}" for name in (
        "Linear", "Rectifier", "Tanh", "Logistic", "Saturation", "Softplus", "Swish", "Mish", "Exp", "LogisticWithLoss", "Nothing")),
    *(f"Type=Activation\nNbOutputs=4\nActivationFunction=Rectifier\nActivationFunction.{keys}" for keys in (
        "LeakSlope=0.1", "Clipping=6", "LeakSlope=0.1\nActivationFunction.Clipping=6", "LeakSlope=-1", "Clipping=-6", "Alpha=2")),
    "Type=Activation\nNbOutputs=4\nActivationFunction=Saturation\nActivationFunction.Threshold=2.5",
    "Type=Activation\nNbOutputs=4\nActivationFunction=Tanh\nActivationFunction.Alpha=0.5",
    "Type=Activation\nNbOutputs=4",
    "Type=Activation\nNbOutputs=5",
    *(f"Type=Conv\nNbOutputs=6\n{keys}" for keys in (
        "KernelSize=3", "KernelSize=1\nActivationFunction=Rectifier", "KernelWidth=3\nKernelHeight=2", "KernelDims=2 3\nStrideDims=2 1\nPaddingDims=1 0",
        "KernelSize=3\nStride=2\nPadding=1", "KernelSize=3\nStrideX=2\nStrideY=1\nPaddingX=1\nPaddingY=0", "KernelSize=2\nDilation=2",
        "KernelSize=3\nSubSample=2", "KernelSize=3\nNbGroups=2", "KernelSize=3\nMapping.NbGroups=2", "KernelSize=3\nMapping.SizeX=2",
        "KernelSize=9", "KernelSize=0", "KernelSize=3\nStride=0", "KernelSize=3\nPadding=-1", "", "KernelSize=3\nNbGroups=3",
        f"KernelSize=3\n{CONFIG}NoBias=1", f"KernelSize=3\n{CONFIG}OutputsRemap=1:2,0:2", f"KernelSize=3\n{CONFIG}OutputsRemap=1:3,0:2",
        "KernelSize=3\nQuantBits=16", "KernelSize=3\nQuantBits=9", "KernelSize=3\nQuantize=0", "KernelSize=3\nModel=Frame", "KernelSize=3\nModel=Spike",
        f"KernelSize=3\n{CONFIG}WeightsExportFormat=HWCO\nWeightsExportFlip=1")),
    *(f"Type=Deconv\nNbOutputs=6\n{keys}" for keys in ("KernelSize=3", "KernelSize=3\nStride=2\nPadding=1", f"KernelSize=2\n{CONFIG}NoBias=1", "KernelSize=1\nPadding=9")),
    *(f"Type=Fc\nNbOutputs=6\n{keys}" for keys in (
        "", "ActivationFunction=Rectifier", f"{CONFIG}NoBias=1", f"{CONFIG}Normalize=1", f"{CONFIG}DropConnect=0.5", "InputOffsetX=2\nInputOffsetY=1",
        "InputWidth=3\nInputHeight=2", "InputOffsetX=9", "InputWidth=99")),
    *(f"Type=Pool\nNbOutputs=4\n{keys}" for keys in (
        "Pooling=Max\nPoolSize=2", "Pooling=Average\nPoolSize=2\nStride=2", "Pooling=Max\nPoolWidth=3\nPoolHeight=2\nStrideX=2\nPadding=1", "Pooling=Max",
        "Pooling=Min\nPoolSize=2", "Pooling=Max\nPoolSize=9", "Pooling=Average\nPoolDims=3 2\nPaddingDims=1 0", "Pooling=Max\nPoolSize=2\nActivationFunction=Rectifier")),
    "Type=Pool\nNbOutputs=2\nPooling=Max\nPoolSize=2", "Type=Pool\nNbOutputs=2\nPooling=Average\nPoolSize=2\nMapping.Size=2",
    "Type=Pool\nNbOutputs=2\nPooling=Max\nPoolSize=2\nMapping.SizeX=2\nMapping.StrideX=2", "Type=Pool\nNbOutputs=4\nPooling=Max\nPoolSize=2\nMapping.Size=1",
    "Type=BatchNorm\nNbOutputs=4", f"Type=BatchNorm\nNbOutputs=4\n{CONFIG}Epsilon=0.01", "Type=BatchNorm\nNbOutputs=3", "Type=BatchNorm\nNbOutputs=4\nActivationFunction=Rectifier",
    *(f"Type=ElemWise\nNbOutputs=4\nInput=sp,sp\n{keys}" for keys in (
        "Operation=Sum", "Operation=Sum\nWeights=0.5 2", "Operation=Sum\nWeights=0.5\nShifts=1 -1", "Operation=AbsSum", "Operation=EuclideanSum\nShifts=1 2", "Operation=Prod",
        "Operation=Max", "Operation=Min", "", "Operation=Half", "Operation=Sum\nWeights=1 2 3", "Operation=Sum\nActivationFunction=Rectifier")),
    "Type=Dropout\nNbOutputs=4", f"Type=Dropout\nNbOutputs=4\n{CONFIG}Dropout=0.3",
    "Type=Softmax\nNbOutputs=4", "Type=Softmax\nNbOutputs=4\nWithLoss=1", "Type=Softmax\nNbOutputs=4\nGroupSize=2", "Type=Softmax\nNbOutputs=4\nGroupSize=3",
    "Type=Padding\nNbOutputs=4\nTopPadding=1\nLeftPadding=2\nBottomPadding=0\nRightPadding=-1", "Type=Padding\nNbOutputs=4\nTopPadding=-9\nLeftPadding=0\nBottomPadding=0\nRightPadding=0", "Type=Padding\nNbOutputs=4",
    *(f"Type=Resize\nNbOutputs=4\nOutputWidth=12\nOutputHeight=9\nMode={mode}" for mode in ("Nearest", "NearestNeighbor", "Bilinear", "BilinearTF", "Cubic", f"Bilinear\n{CONFIG}AlignCorners=0")),
    "Type=LRN\nNbOutputs=4", f"Type=LRN\nNbOutputs=4\n{CONFIG}N=3\nAlpha=1\nBeta=0.5\nK=1", "Type=LRN\nNbOutputs=3", f"Type=LRN\nNbOutputs=4\n{CONFIG}N=0",
    "Type=Normalize\nNbOutputs=4\nNorm=L1", "Type=Normalize\nNbOutputs=4\nNorm=L2", "Type=Normalize\nNbOutputs=4\nNorm=L3", "Type=Normalize\nNbOutputs=4", "Type=Normalize\nNbOutputs=5\nNorm=L2",
    *(f"Type=Reshape\nNbOutputs=4\nDims={dims}" for dims in ("8 6 4", "0 0 0", "48 4", "192", "-1 4", "5 5 4", "0 -1 4")),
    *(f"Type=Transpose\nNbOutputs={count}\nPerm={perm}" for count, perm in ((4, "0 1 2 3"), (4, "1 0 2 3"), (6, "0 2 1 3"), (8, "2 1 0 3"), (4, "0 1 2"), (4, "0 1 3 2"), (4, "0 0 1 3"))),
    *(f"Type=Scaling\nNbOutputs=4\nFactor={factor}" for factor in ("2", "0", "-0.5", "a")),
    *(f"Type=Threshold\nNbOutputs=4\nThreshold=0.5\n{CONFIG}Operation={name}{more}" for name in ("Binary", "BinaryInverted", "Truncate", "ToZero", "ToZeroInverted", "Otsu") for more in ("", "\nMaxValue=2")),
    "Type=Threshold\nNbOutputs=4\nThreshold=0.5", "Type=Threshold\nNbOutputs=4",
    *(f"Type=Transformation\nNbOutputs=4\nTransformation={keys}" for keys in (
        "Rescale\nWidth=4\nHeight=3", "Rescale\nWidth=0\nHeight=3", "Flip\nHorizontalFlip=1", "Flip\nVerticalFlip=1", "RangeAffine\nFirstOperator=Multiplies\nFirstValue=2", "RangeAffine\nFirstOperator=Minus\nFirstValue=1 2 3 4\nSecondOperator=Divides\nSecondValue=2",
        "RangeClipping\nRangeMin=0\nRangeMax=1", "RangeClipping\nRangeMin=1\nRangeMax=0", "RangeClipping", "PadCrop\nWidth=10\nHeight=4", "Affine\nFirstOperator=Plus\nFirstValue=1", "Nothing", "ColorSpace\nColorSpace=BGR", "Reshape\nNbRows=6\nNbCols=8")),
    "Type=Unpool\nNbOutputs=4\nPooling=Max\nPoolSize=2\nStride=2\nArgMax=sp", "Type=Unpool\nNbOutputs=4\nPooling=Average\nPoolSize=2", "Type=Anchor", "Type=RP", "Type=Nothing\nNbOutputs=4", "NbOutputs=4", "Type=Conv", "Type=Distance\nNbOutputs=4", "Type=FMP\nNbOutputs=4\nScalingRatio=2",
    *(f"Type=Fc\nNbOutputs=60\nWeightsFiller={name}{more}" for name, mores in (
        ("HeFiller", ("", "\nWeightsFiller.VarianceNorm=Average", "\nWeightsFiller.VarianceNorm=FanOut", "\nWeightsFiller.Scaling=3", "\nWeightsFiller.MeanNorm=2")),
        ("XavierFiller", ("", "\nWeightsFiller.VarianceNorm=Average\nWeightsFiller.Scaling=4", "\nWeightsFiller.Distribution=Normal\nWeightsFiller.Scaling=4")),
        ("NormalFiller", ("", "\nWeightsFiller.Mean=3\nWeightsFiller.StdDev=2")), ("UniformFiller", ("", "\nWeightsFiller.Min=1\nWeightsFiller.Max=5")),
        ("ConstantFiller", ("", "\nWeightsFiller.Value=0.5")), ("OtherFiller", ("",))) for more in mores),
]  # fmt: skip
"""The keys of a section "y" behind a provider of 8 columns, 6 lines, 4 channels."""
