/* A guest of its own firmware: the reset vector leads here, no BIOS and no kernel come before it.

   It lives in a ROM of 64 KiB below 4 GiB and in the memory from 64 KiB on, in 32-bit protected mode without paging, so that a KVM that
   interprets instructions is through with it in a moment. It says `R` when it runs, echoes what the serial port sends, and sleeps until the
   clock ticks. Commands are single letters:

     p  powers off            r  resets                 d  is deaf for ever
     w  writes a sector of the first disk: the word "written" at MARKED, and says w when the disk has it
     n  says how many virtio disks and network cards there are, as two digits
     c  says how many times the clock has ticked since the reset, as eight hexadecimal digits

   The power button powers it off. It lets go of devices that are unplugged, and answers as a guest agent. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

enum { MARKED = 128, DISK = 0x1042, OLD_DISK = 0x1001, CARD = 0x1041, OLD_CARD = 0x1000, SERIAL = 0x1043, OLD_SERIAL = 0x1003 };
enum { COM = 0x3f8, PM_STATUS = 0x600, PM_ENABLE = 0x602, PM_CONTROL = 0x604, GPE_STATUS = 0x620, HOTPLUG = 0xcc0 };

static inline void out8(u16 port, u8 value) { __asm__ volatile("outb %0, %1" : : "a"(value), "Nd"(port)); }
static inline void out16(u16 port, u16 value) { __asm__ volatile("outw %0, %1" : : "a"(value), "Nd"(port)); }
static inline void out32(u16 port, u32 value) { __asm__ volatile("outl %0, %1" : : "a"(value), "Nd"(port)); }
static inline u8 in8(u16 port) { u8 value; __asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port)); return value; }
static inline u16 in16(u16 port) { u16 value; __asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port)); return value; }
static inline u32 in32(u16 port) { u32 value; __asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port)); return value; }

/* The linker keeps what is written to in memory, and start() has cleared it: nothing here has a first value. */
static volatile u32 ticks;
static u8 buses;

/* ---- interrupts: the clock's alone, because a processor that halts needs one to go on ---- */

static struct { u16 low, selector, kind, high; } vectors[40];
static struct { u16 limit; u32 base; } __attribute__((packed)) table;

/* It comes in rest() alone, which wants no interrupts afterwards: so it drops the flags and the segment that the processor pushed. An
   interpreting KVM knows no IRET in protected mode. */
void on_tick(void) { ticks++; out8(0x20, 0x20); }
__asm__(".globl tick\ntick: pushal\n call on_tick\n popal\n ret $8");
extern void tick(void);

static void rest(void) { __asm__ volatile("sti; hlt; cli" : : : "cc", "memory"); }

static void set_clock(void) {
    u32 address = (u32)tick;
    vectors[32].low = (u16)address, vectors[32].selector = 8, vectors[32].kind = 0x8e00, vectors[32].high = (u16)(address >> 16);
    /* The local APIC lets the old interrupt controller through. */
    *(volatile u32 *)0xfee000f0 = 0x1ff, *(volatile u32 *)0xfee00350 = 0x700;
    table.limit = sizeof vectors - 1, table.base = (u32)vectors;
    __asm__ volatile("lidt %0" : : "m"(table));
    out8(0x20, 0x11), out8(0x21, 32), out8(0x21, 4), out8(0x21, 1), out8(0x21, 0xfe);
    out8(0xa0, 0x11), out8(0xa1, 40), out8(0xa1, 2), out8(0xa1, 1), out8(0xa1, 0xff);
    out8(0x43, 0x34), out8(0x40, 0), out8(0x40, 0); /* 18.2 times a second */
}

/* ---- PCI ---- */

static void at(u8 bus, u8 slot, u8 reg) { out32(0xcf8, 0x80000000 | bus << 16 | slot << 8 | (reg & 0xfc)); }
static u32 get(u8 bus, u8 slot, u8 reg) { at(bus, slot, reg); return in32(0xcfc); }
static void set(u8 bus, u8 slot, u8 reg, u32 value) { at(bus, slot, reg); out32(0xcfc, value); }

/* Each root port leads to a bus of its own with a window of a mebibyte. */
static u32 window(u8 bus) { return 0xc0000000 + ((u32)bus << 20); }

static void open_bridges(void) {
    for (u32 slot = 0; slot < 256; slot++) {
        if ((get(0, slot, 0) & 0xffff) == 0xffff || (get(0, slot, 12) >> 16 & 0x7f) != 1) continue;
        u8 bus = ++buses;
        u32 base = window(bus) >> 16;
        set(0, slot, 0x18, bus << 16 | bus << 8);
        set(0, slot, 0x20, base << 16 | base);
        set(0, slot, 0x24, 0x0000fff0);
        set(0, slot, 4, 7);
    }
}

static u32 kind(u8 bus, u8 slot) {
    u32 id = get(bus, slot, 0);
    return (id & 0xffff) == 0x1af4 ? id >> 16 : 0;
}

static u32 count(u32 one, u32 other) {
    u32 found = 0;
    for (u32 bus = 0; bus <= buses; bus++)
        for (u32 slot = 0; slot < (bus ? 1 : 256); slot++) {
            u32 id = kind(bus, slot);
            found += id == one || id == other;
        }
    return found;
}

/* ---- virtio 1.0, without interrupts ---- */

enum { SIZE = 8, BUFFER = 4096 };
struct descriptor { u32 address, high, bytes; u16 flags, next; };
struct queue {
    struct descriptor descriptors[SIZE];
    volatile struct { u16 flags, index, ring[SIZE]; } available;
    volatile struct { u16 flags, index; struct { u32 id, bytes; } ring[SIZE]; } used __attribute__((aligned(16)));
    volatile u16 *bell;
    u16 number;
} __attribute__((aligned(16)));
struct device { volatile u8 *common, *notify; u32 step; };

static volatile u16 *word(struct device *device, u32 offset) { return (volatile u16 *)(device->common + offset); }
static volatile u32 *wide(struct device *device, u32 offset) { return (volatile u32 *)(device->common + offset); }

/* The registers of a device; its large BAR goes to its bus's window, or to one of those that no bus has. */
static int find(u32 one, u32 other, struct device *device) {
    for (u32 bus = 0; bus <= buses; bus++)
        for (u32 slot = 0; slot < (bus ? 1 : 256); slot++) {
            u32 id = kind(bus, slot);
            if (!id || (id != one && id != other)) continue;
            u32 place = bus ? window(bus) : window(128 + (slot >> 3));
            for (u8 at = get(bus, slot, 0x34) & 0xff; at; at = get(bus, slot, at) >> 8 & 0xff) {
                u32 head = get(bus, slot, at);
                if ((head & 0xff) != 9) continue;
                u32 what = head >> 24, bar = get(bus, slot, at + 4) & 0xff;
                volatile u8 *registers = (volatile u8 *)(place + get(bus, slot, at + 8));
                if (what == 1) device->common = registers, set(bus, slot, 0x10 + 4 * bar, place), set(bus, slot, 0x14 + 4 * bar, 0);
                if (what == 2) device->notify = registers, device->step = get(bus, slot, at + 16);
            }
            set(bus, slot, 4, 6);
            return 1;
        }
    return 0;
}

static void begin(struct device *device, u32 features) {
    device->common[20] = 0;
    while (device->common[20]) {}
    device->common[20] = 3;
    *wide(device, 8) = 0, *wide(device, 12) = features;
    *wide(device, 8) = 1, *wide(device, 12) = 1;
    device->common[20] = 11;
}

static void add_queue(struct device *device, struct queue *queue, u16 number) {
    *word(device, 22) = number, *word(device, 24) = SIZE;
    *wide(device, 32) = (u32)queue->descriptors, *wide(device, 36) = 0;
    *wide(device, 40) = (u32)&queue->available, *wide(device, 44) = 0;
    *wide(device, 48) = (u32)&queue->used, *wide(device, 52) = 0;
    queue->bell = (volatile u16 *)(device->notify + *word(device, 30) * device->step), queue->number = number;
    queue->available.flags = 1;
    *word(device, 28) = 1;
}

static void describe(struct queue *queue, u16 number, const volatile void *address, u32 bytes, u16 flags) {
    queue->descriptors[number] = (struct descriptor){(u32)address, 0, bytes, flags, (u16)(number + 1)};
}

static void offer(struct queue *queue) {
    queue->available.ring[queue->available.index % SIZE] = 0;
    queue->available.index++;
    *queue->bell = queue->number;
}

static void finish(struct queue *queue) { while (queue->used.index != queue->available.index) __asm__ volatile("pause"); }

/* ---- the first disk ---- */

static struct device disk;
static struct queue requests;
static u8 sector[512];

static int write_sector(void) {
    static const char text[] = "written";
    static struct { u32 what, zero, number, high; } header;
    static volatile u8 status;
    if (!disk.common) return 0;
    for (u32 i = 0; i < sizeof text; i++) sector[i] = text[i];
    header.what = 1, header.number = MARKED, status = 255;
    describe(&requests, 0, &header, 16, 1), describe(&requests, 1, sector, 512, 1), describe(&requests, 2, &status, 1, 2);
    offer(&requests), finish(&requests);
    return status == 0;
}

/* ---- the agent ---- */

static struct device serial;
static struct queue control, hearing, saying;
static char heard[BUFFER], line[BUFFER], said[BUFFER];
static u32 length;

static void tell(u32 port, u16 event) {
    static struct { u32 port; u16 event, value; } message;
    message.port = port, message.event = event, message.value = 1;
    describe(&control, 0, &message, 8, 0), offer(&control), finish(&control);
}

static void listen(void) { describe(&hearing, 0, heard, BUFFER, 2), offer(&hearing); }

static const char *search(const char *text, const char *word) {
    for (; *text; text++) {
        u32 i = 0;
        while (word[i] && text[i] == word[i]) i++;
        if (!word[i]) return text + i;
    }
    return 0;
}

static u32 add(u32 to, const char *text) { while (*text) said[to++] = *text++; return to; }

static void answer(void) {
    u32 bytes = 0;
    const char *id = search(line, "\"id\":");
    if (search(line, "guest-sync-delimited")) said[bytes++] = (char)255;
    if (search(line, "\"guest-sync") && id) {
        bytes = add(bytes, "{\"return\": ");
        while (*id == ' ') id++;
        while (*id >= '0' && *id <= '9') said[bytes++] = *id++;
        bytes = add(bytes, "}\n");
    } else if (search(line, "\"guest-ping\""))
        bytes = add(bytes, "{\"return\": {}}\n");
    else if (search(line, "\"guest-get-host-name\""))
        bytes = add(bytes, "{\"return\": {\"host-name\": \"bare\"}}\n");
    else if (search(line, "\"guest-info\""))
        bytes = add(bytes, "{\"return\": {\"version\": \"1.0\", \"supported_commands\": ["
                           "{\"name\": \"guest-ping\", \"enabled\": true, \"success-response\": true}, "
                           "{\"name\": \"guest-get-host-name\", \"enabled\": true, \"success-response\": true}]}}\n");
    else
        bytes = add(bytes, "{\"error\": {\"class\": \"CommandNotFound\", \"desc\": \"this guest has no such command\"}}\n");
    describe(&saying, 0, said, bytes, 0), offer(&saying), finish(&saying);
}

static void serve(void) {
    if (!serial.common || hearing.used.index != hearing.available.index) return;
    u32 bytes = hearing.used.ring[(u16)(hearing.used.index - 1) % SIZE].bytes;
    for (u32 i = 0; i < bytes; i++) {
        if (heard[i] == '\n') line[length] = 0, length = 0, answer();
        else if ((u8)heard[i] == 255) length = 0;
        else if (length < BUFFER - 1) line[length++] = heard[i];
    }
    listen();
}

static void open_devices(void) {
    open_bridges();
    if (find(DISK, OLD_DISK, &disk)) begin(&disk, 0), add_queue(&disk, &requests, 0), disk.common[20] = 15;
    if (find(SERIAL, OLD_SERIAL, &serial)) {
        /* Several ports; the agent's is the first after that of a console, and has the third pair of queues. */
        begin(&serial, 2);
        add_queue(&serial, &control, 3), add_queue(&serial, &hearing, 4), add_queue(&serial, &saying, 5);
        serial.common[20] = 15;
        tell(0, 0), tell(1, 3), tell(1, 6), listen();
    }
}

/* ---- the board ---- */

static void say(u8 letter) { while (!(in8(COM + 5) & 0x20)) {} out8(COM, letter); }

static void number(u32 value, u32 digits) {
    while (digits--) say("0123456789abcdef"[value >> 4 * digits & 15]);
}

static void let_go(void) {
    if (!(in8(GPE_STATUS) & 2)) return;
    out8(GPE_STATUS, 2);
    for (u32 bus = 0; bus <= buses; bus++) {
        out32(HOTPLUG + 16, bus);
        u32 slots = in32(HOTPLUG + 4);
        if (slots) out32(HOTPLUG + 8, slots);
    }
}

static void power_off(void) { out16(PM_CONTROL, 0x2000); }

static void obey(u8 letter) {
    if (letter == 'p') power_off();
    if (letter == 'r') out8(0xcf9, 6);
    if (letter == 'd') for (;;) __asm__ volatile("cli; hlt");
    if (letter == 'n') number(count(DISK, OLD_DISK), 1), number(count(CARD, OLD_CARD), 1);
    else if (letter == 'c') number(ticks, 8);
    else if (letter == 'w') say(write_sector() ? 'w' : '!');
    else say(letter);
}

void start(void) {
    /* The power management registers at 0x600, as firmware puts them. */
    set(0, 0x1f << 3, 0x40, 0x601), set(0, 0x1f << 3, 0x44, 0x80);
    set_clock();
    open_devices();
    out16(PM_ENABLE, 0x100);
    say('R');
    for (;;) {
        rest();
        while (in8(COM + 5) & 1) obey(in8(COM));
        if (in16(PM_STATUS) & 0x100) out16(PM_STATUS, 0x100), power_off();
        let_go(), serve();
    }
}
