.section .note.GNU-stack, "", @progbits
# The reset vector and the way into 32-bit protected mode (guest.c). The processor begins at 0xfffffff0 in 16-bit mode, with a code segment
# that covers this ROM's last 64 KiB.
.section .early, "ax"
.code16
early:
    cli
    cld
    lgdtl %cs:table - early
    movl %cr0, %eax
    andl $0x9fffffff, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmpl $8, $protected
.code32
protected:
    movw $16, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %fs
    movw %ax, %gs
    movw %ax, %ss
    movl $0x90000, %esp
    movl $memory, %edi
    movl $memory_words, %ecx
    xorl %eax, %eax
    rep stosl
    call start
    .balign 8
    # Marked as accessed: a processor does not write into this ROM.
segments:
    .quad 0
    .quad 0x00cf9b000000ffff
    .quad 0x00cf93000000ffff
table:
    .word 23
    .long segments

.section .vector, "ax"
.code16
    jmp early
