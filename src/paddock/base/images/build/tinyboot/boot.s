# The boot loader of the tiny guest for a BIOS. To make boot.bin: as --32 boot.s -o boot.o && ld -m elf_i386 -Ttext=0x7c00 --oformat=binary boot.o -o boot.bin
# It copies a bare kernel and its initial RAM file system from the disk to the places that a table names, and enters the kernel as PVH says:
# 32-bit protected mode, no paging, the address of a start info in EBX. Nothing is unpacked on the guest's processor.
# A BIOS reads 60 KiB at a time and turns in a loop meanwhile: emulated, that takes a third of the CPU time of a boot, and half of it where
# guests share a CPU, because QEMU's other threads wait for the loop. So a virtio disk is read here, all of it at once, with the CPU halted.

.set DATA, 0x8400       # written by Python: entry, start info, module, table, command line
.set ENTRY, DATA
.set START, DATA + 8
.set TABLE, DATA + 96   # entries of 16 bytes: first sector (0: zeros), bytes (0: the end), address
.set MAP_COUNT, START + 48
.set MAP, 0xa000
.set MAP_END, 0xac00
.set BUFFER, 0x10000
.set CHUNK, 0xf000      # a BIOS reads no more than 127 sectors at once; this is 120

# The disk's queue. No code lies in these pages: QEMU translates a page again that it writes to.
.set QUEUE, 128
.set DESCRIPTORS, 0xb000
.set AVAILABLE, 0xb800
.set USED, 0xc000
.set HEADERS, 0xd000    # 16 bytes of each request
.set STATUSES, 0xd800   # one byte of each
.set PARAMETERS, 0xe000 # of the drive, as the BIOS describes it
.set RINGS_SIZE, PARAMETERS - DESCRIPTORS
.set MOST, QUEUE / 3    # requests of three descriptors

# Registers of a virtio device (VirtIO 1.0, 4.1.4.3).
.set FEATURE_SELECT, 0
.set FEATURE, 4
.set DRIVER_FEATURE_SELECT, 8
.set DRIVER_FEATURE, 12
.set STATUS, 20
.set QUEUE_SELECT, 22
.set QUEUE_SIZE, 24
.set QUEUE_ENABLE, 28
.set QUEUE_NOTIFY, 30
.set QUEUE_DESCRIPTORS, 32
.set QUEUE_AVAILABLE, 40
.set QUEUE_USED, 48

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
    jmp virtio
bios:
    movw $0x7c00, %sp
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

virtio:
    # The requests must fit into the queue.
    xorw %cx, %cx
    movw $TABLE, %bp
1:  cmpl $0, 4(%bp)
    je 3f
    cmpl $0, (%bp)
    je 2f
    incw %cx
2:  addw $16, %bp
    jmp 1b
3:  cmpw $MOST, %cx
    ja bios
    movw %cx, requests
    # The BIOS says on which PCI device the drive is.
    movw $PARAMETERS, %si
    movw $74, (%si)
    movb drive, %dl
    movb $0x48, %ah
    int $0x13
    jc bios
    cmpl $0x20494350, PARAMETERS + 36   # "PCI "
    jne bios
    movzbl PARAMETERS + 48, %eax
    shll $5, %eax
    orb PARAMETERS + 49, %al
    shll $3, %eax
    orb PARAMETERS + 50, %al
    shll $8, %eax
    orl $0x80000000, %eax
    movl %eax, device
    xorb %bl, %bl
    call config
    cmpl $0x10421af4, %eax              # a disk
    je 1f
    cmpl $0x10011af4, %eax              # a disk that knows the interface before 1.0, too
    jne bios
1:  movb $0x34, %bl
    call config
    movb %al, %bl
capability:
    testb %bl, %bl
    jz 5f
    call config
    pushl %eax
    cmpb $9, %al
    jne 4f
    shrl $24, %eax
    movw $common, %di
    cmpb $1, %al
    je 1f
    movw $notify, %di
    cmpb $2, %al
    jne 4f
1:  cmpl $0, (%di)
    jne 4f
    pushw %bx
    addb $4, %bl
    call config
    movb %al, %cl
    addb $4, %bl
    call config
    movl %eax, (%di)
    addb $8, %bl
    call config
    movl %eax, 4(%di)
    shlb $2, %cl
    movb $0x10, %bl
    addb %cl, %bl
    call config
    testb $1, %al
    jnz bios
    testb $4, %al
    jz 2f
    pushl %eax
    addb $4, %bl
    call config
    testl %eax, %eax
    popl %eax
    jnz bios                            # above 4 GiB
2:  andb $0xf0, %al
    addl %eax, (%di)
    popw %bx
4:  popl %eax
    movb %ah, %bl
    jmp capability
5:  cmpl $0, common
    je bios
    cmpl $0, notify
    je bios

    call flat
    movl common, %esi
    # VirtIO 1.0, and addresses as they are. After the reset below, the BIOS reads nothing from this disk any more.
    movl $1, FEATURE_SELECT(%esi)
    movl FEATURE(%esi), %eax
    andb $3, %al
    cmpb $1, %al
    jne 1f
    movw $0, QUEUE_SELECT(%esi)
    cmpw $QUEUE, QUEUE_SIZE(%esi)
    jae 2f
1:  call back
    jmp bios
2:  call reset
    movb $1, STATUS(%esi)
    movb $3, STATUS(%esi)
    movl $0, DRIVER_FEATURE_SELECT(%esi)
    movl $0, DRIVER_FEATURE(%esi)
    movl $1, DRIVER_FEATURE_SELECT(%esi)
    movl $1, DRIVER_FEATURE(%esi)
    movb $11, STATUS(%esi)
    movl $DESCRIPTORS, %edi
    movl $RINGS_SIZE / 4, %ecx
    xorl %eax, %eax
    cld
    addr32 rep stosl
    movw $0, QUEUE_SELECT(%esi)
    movw $QUEUE, QUEUE_SIZE(%esi)
    movl $DESCRIPTORS, QUEUE_DESCRIPTORS(%esi)
    movl %eax, QUEUE_DESCRIPTORS + 4(%esi)
    movl $AVAILABLE, QUEUE_AVAILABLE(%esi)
    movl %eax, QUEUE_AVAILABLE + 4(%esi)
    movl $USED, QUEUE_USED(%esi)
    movl %eax, QUEUE_USED + 4(%esi)
    movzwl QUEUE_NOTIFY(%esi), %eax
    mull notify + 4
    addl %eax, notify
    movw $1, QUEUE_ENABLE(%esi)
    movb $15, STATUS(%esi)
    call back

    # A request: its header, the memory, its status.
    movw $1, AVAILABLE                  # no interrupts
    movw $TABLE, %bp
    movw $DESCRIPTORS, %di
    movw $HEADERS, %si
    xorl %ebx, %ebx                     # the number of the request
    xorl %ecx, %ecx                     # that of its first descriptor
1:  cmpl $0, 4(%bp)
    je 3f
    movl (%bp), %eax
    testl %eax, %eax
    jz 2f
    movl %eax, 8(%si)
    movw %si, (%di)
    movb $16, 8(%di)
    movb $1, 12(%di)
    movw %bx, %ax
    addw %ax, %ax
    movw %ax, %dx
    addw $AVAILABLE + 4, %dx
    xchgw %dx, %di
    movw %cx, (%di)
    xchgw %dx, %di
    incw %cx
    movw %cx, 14(%di)
    movl 8(%bp), %eax
    movl %eax, 16(%di)
    movl 4(%bp), %eax
    movl %eax, 24(%di)
    movb $3, 28(%di)
    incw %cx
    movw %cx, 30(%di)
    leaw STATUSES(%bx), %ax
    movw %ax, 32(%di)
    movb $1, 40(%di)
    movb $2, 44(%di)
    incw %cx
    incw %bx
    addw $16, %si
    addw $48, %di
2:  addw $16, %bp
    jmp 1b
3:  movw %bx, AVAILABLE + 2
    call flat
    movl notify, %esi
    movw $0, (%esi)
    # Meanwhile, the zeros.
    movw $TABLE, %bp
1:  movl 4(%bp), %ecx
    jecxz 3f
    cmpl $0, (%bp)
    jne 2f
    movl 8(%bp), %edi
    shrl $2, %ecx
    xorl %eax, %eax
    addr32 rep stosl
2:  addw $16, %bp
    jmp 1b
3:  call back
    # The clock's interrupt ends each halt, after 55 ms at most.
    movw requests, %cx
1:  cmpw %cx, USED + 2
    je 2f
    hlt
    jmp 1b
2:  movw $STATUSES, %si
1:  lodsb
    testb %al, %al
    jnz failed
    loop 1b
    call flat
    movl common, %esi
    call reset
    call back
    jmp enter

reset:
    movb $0, STATUS(%esi)
1:  cmpb $0, STATUS(%esi)
    jne 1b
    ret

    # EAX: the four bytes at register BL of the device.
config:
    movl device, %eax
    movb %bl, %al
    andb $0xfc, %al
    movw $0xcf8, %dx
    outl %eax, %dx
    movw $0xcfc, %dx
    inl %dx, %eax
    ret

device: .long 0
common: .long 0, 0                      # address
notify: .long 0, 0                      # address, bytes of a queue
requests: .word 0

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
    .org 2048
