package xfrm

const tailPad = 4
