[{{P}}_cls] lat
Input={{P}}
NbOutputs=9
ActivationFunction=Logistic
[{{P}}_box] lat
Input={{P}}
NbOutputs=36
