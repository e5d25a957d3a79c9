"""The admission rules of machines (docs/spec/kubevirt.md section 2.11), each a pure function with the number it has there.

`instance` gathers the rules about hardware, `machine` those about what is around it; both work at any place of any kind.
What a single field can say by itself is in the declarations: V4, V18, V19, V33, V40, V44, V48, V53, V55, V56, V58, V59, V62,
V76, V77, V84, V88, V89, V94 to V96, and parts of V68, V82, V85, V97, V99 and V103.
"""
