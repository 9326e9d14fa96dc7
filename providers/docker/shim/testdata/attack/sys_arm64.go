package main

const sysProcessVMWritev = 271
