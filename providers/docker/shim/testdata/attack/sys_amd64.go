package main

const sysProcessVMWritev = 311
