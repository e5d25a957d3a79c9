# The boot loader of the tiny guest for a BIOS. To make boot.bin: as --32 boot.s -o boot.o && ld -m elf_i386 -Ttext=0x7c00 --oformat=binary boot.o -o boot.bin
# It copies a bare kernel and its initial RAM file system from the disk to the places that a table names, and enters the kernel as PVH says:
# 32-bit protected mode, no paging, the address of a start info in EBX. Nothing is unpacked on the guest's processor.

.set DATA, 0x8000       # written by Python: entry, start info, module, table, command line
.set ENTRY, DATA
.set START, DATA + 8
.set TABLE, DATA + 96   # entries of 16 bytes: first sector (0: zeros), bytes (0: the end), address
.set MAP_COUNT, START + 48
.set MAP, 0x9000
.set MAP_END, 0x9c00
.set BUFFER, 0x10000
.set CHUNK, 0xf000      # a BIOS reads no more than 127 sectors at once; this is 120

.code16
first:
    cli
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movw $0x7c00, %sp
    ljmp $0, $1f
1:  sti
    cld
    movb %dl, drive
    movw $rest, %si
    movb $0x42, %ah
    int $0x13
    jc failed
    jmp second

failed:
    movw $text, %si
1:  lodsb
    testb %al, %al
    jz 2f
    movb $0x0e, %ah
    movw $7, %bx
    int $0x10
    jmp 1b
2:  hlt
    jmp 2b

drive: .byte 0
text: .asciz "cannot read the disk\r\n"

    # Disk address packet of the second part; Python writes its length and its first sector.
    .org 424
rest: .byte 16, 0
    .word 0, 0x7e00, 0
    .quad 0

    .org 512
second:
    movw $0x2401, %ax
    int $0x15
    # The memory map: the BIOS writes 20 of each entry's 24 bytes.
    xorl %ebx, %ebx
    movw $MAP, %di
1:  movl $0xe820, %eax
    movl $0x534d4150, %edx
    movl $20, %ecx
    int $0x15
    jc 2f
    cmpl $0x534d4150, %eax
    jne 2f
    movl $0, 20(%di)
    addw $24, %di
    incl MAP_COUNT
    cmpw $MAP_END, %di
    jae 2f
    testl %ebx, %ebx
    jnz 1b
2:
    movw $TABLE, %bp
entry:
    cmpl $0, 4(%bp)
    je enter
    cmpl $0, (%bp)
    je zeros
chunk:
    movl 4(%bp), %ecx
    cmpl $CHUNK, %ecx
    jbe 1f
    movl $CHUNK, %ecx
1:  movl (%bp), %eax
    movl %eax, packet + 8
    movl %ecx, %eax
    shrl $9, %eax
    movw %ax, packet + 2
    addl %eax, (%bp)
    subl %ecx, 4(%bp)
    pushl %ecx
    movb drive, %dl
    movw $packet, %si
    movb $0x42, %ah
    int $0x13
    jc failed
    popl %ecx
    movl $BUFFER, %esi
    movl 8(%bp), %edi
    addl %ecx, 8(%bp)
    call flat
    shrl $2, %ecx
    cld
    addr32 rep movsl
    call back
    cmpl $0, 4(%bp)
    jne chunk
    jmp following
zeros:
    movl 4(%bp), %ecx
    movl 8(%bp), %edi
    call flat
    shrl $2, %ecx
    xorl %eax, %eax
    cld
    addr32 rep stosl
    call back
following:
    addw $16, %bp
    jmp entry

    # DS and ES reach all four GiB, until a BIOS loads them anew.
flat:
    cli
    lgdtl table
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    jmp 1f
1:  movw $8, %dx
    movw %dx, %ds
    movw %dx, %es
    andb $0xfe, %al
    movl %eax, %cr0
    jmp 2f
2:  ret
back:
    xorw %ax, %ax
    movw %ax, %ds
    movw %ax, %es
    sti
    ret

enter:
    cli
    lgdtl table
    movl %cr0, %eax
    orb $1, %al
    movl %eax, %cr0
    ljmp $16, $protected
.code32
protected:
    movw $8, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %fs
    movw %ax, %gs
    movw %ax, %ss
    movl $START, %ebx
    jmp *ENTRY

    .balign 8
segments:
    .quad 0
    .quad 0x00cf92000000ffff
    .quad 0x00cf9a000000ffff
table:
    .word 23
    .long segments
packet: .byte 16, 0
    .word 0, 0, BUFFER >> 4
    .quad 0
    .org 1024
