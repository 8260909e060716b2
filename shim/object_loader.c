/* Loads a relocatable x86-64 object without a linker. The bytes come from a disk cache and are not trusted to be well
 * formed: every offset is checked before it is used. Code, constants and data lie on pages of their own, and no page is
 * ever writable and executable at once. */
#include "shim.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, MOST_SECTIONS = 4096, MOST_SYMBOLS = 1 << 16, STUB_BYTES = 16 };
static const uint64_t most_bytes = UINT64_C(1) << 30;

/* Pages by protection, in the order they are laid out. */
enum Group { GROUP_CODE, GROUP_CONSTANTS, GROUP_DATA, GROUP_COUNT };

static const int group_protection[GROUP_COUNT] = {PROT_READ | PROT_EXEC, PROT_READ, PROT_READ | PROT_WRITE};

struct LoadedObject {
    unsigned char *base;
    size_t length;
    char **names; /* of the symbols defined in it */
    void **addresses;
    size_t symbol_count;
};

typedef struct Loader {
    const unsigned char *bytes;
    uint64_t length;
    const Elf64_Shdr *sections;
    size_t section_count;
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *strings;
    uint64_t strings_length;
    uint64_t *section_offsets; /* in the mapping; UINT64_MAX for a section that is not loaded */
    uint64_t *addresses; /* of the symbols */
    uint64_t group_start[GROUP_COUNT + 1];
    uint64_t stubs, table; /* offsets of the jumps to, and the addresses of, symbols elsewhere */
    LoadedObject *object;
} Loader;

static int malformed(const char *what) {
    PyErr_Format(PyExc_ValueError, "malformed object file: %s", what);
    return -1;
}

/* Whether [offset, offset + size) lies within [0, length). */
static bool within(uint64_t offset, uint64_t size, uint64_t length) {
    return offset <= length && size <= length - offset;
}

static int read_header(Loader *loader) {
    const Elf64_Ehdr *header = (const void *)loader->bytes;
    if (loader->length < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB)
        return malformed("not a 64-bit ELF file");
    if (header->e_type != ET_REL || header->e_machine != EM_X86_64 || header->e_shentsize != sizeof(Elf64_Shdr))
        return malformed("not a relocatable x86-64 object");
    loader->section_count = header->e_shnum;
    if (loader->section_count == 0 || loader->section_count > MOST_SECTIONS || header->e_shoff % 8 ||
        !within(header->e_shoff, loader->section_count * sizeof(Elf64_Shdr), loader->length))
        return malformed("section headers out of bounds");
    loader->sections = (const void *)(loader->bytes + header->e_shoff);
    return 0;
}

static int check_section(const Loader *loader, const Elf64_Shdr *section) {
    if (section->sh_type != SHT_NOBITS && section->sh_type != SHT_NULL &&
        !within(section->sh_offset, section->sh_size, loader->length))
        return malformed("a section is out of bounds");
    if (section->sh_size > most_bytes)
        return malformed("a section is too large");
    if (section->sh_addralign > PAGE || (section->sh_addralign & (section->sh_addralign - 1)))
        return malformed("the alignment of a section is not a power of two up to a page");
    if (section->sh_flags & SHF_TLS)
        return malformed("thread-local data is not supported");
    return 0;
}

static int read_symbols(Loader *loader, const Elf64_Shdr *section) {
    if (loader->symbols)
        return malformed("two symbol tables");
    if (section->sh_entsize != sizeof(Elf64_Sym) || section->sh_offset % 8 || section->sh_link >= loader->section_count)
        return malformed("a bad symbol table");
    const Elf64_Shdr *strings = &loader->sections[section->sh_link];
    if (strings->sh_type != SHT_STRTAB || strings->sh_size == 0 ||
        !within(strings->sh_offset, strings->sh_size, loader->length) ||
        loader->bytes[strings->sh_offset + strings->sh_size - 1] != 0)
        return malformed("a bad string table");
    loader->symbols = (const void *)(loader->bytes + section->sh_offset);
    loader->symbol_count = section->sh_size / sizeof(Elf64_Sym);
    loader->strings = (const char *)loader->bytes + strings->sh_offset;
    loader->strings_length = strings->sh_size;
    return loader->symbol_count > MOST_SYMBOLS ? malformed("too many symbols") : 0;
}

static int read_sections(Loader *loader) {
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (check_section(loader, section) || (section->sh_type == SHT_SYMTAB && read_symbols(loader, section)))
            return -1;
    }
    return loader->symbols ? 0 : malformed("no symbol table");
}

static uint64_t align(uint64_t offset, uint64_t alignment) {
    return alignment > 1 ? (offset + alignment - 1) / alignment * alignment : offset;
}

static enum Group group_of(const Elf64_Shdr *section) {
    if (section->sh_flags & SHF_EXECINSTR)
        return GROUP_CODE;
    return section->sh_flags & SHF_WRITE ? GROUP_DATA : GROUP_CONSTANTS;
}

static uint64_t place_group(Loader *loader, enum Group group, uint64_t offset) {
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (!(section->sh_flags & SHF_ALLOC) || group_of(section) != group)
            continue;
        offset = align(offset, section->sh_addralign);
        loader->section_offsets[i] = offset;
        offset += section->sh_size;
    }
    return offset;
}

/* Code and stubs, then constants and the address table, then data. */
static int place_sections(Loader *loader) {
    uint64_t offset = 0;
    for (size_t i = 0; i < loader->section_count; i++)
        loader->section_offsets[i] = UINT64_MAX;
    for (int group = 0; group < GROUP_COUNT; group++) {
        loader->group_start[group] = offset;
        offset = align(place_group(loader, (enum Group)group, offset), STUB_BYTES);
        if (group == GROUP_CODE) {
            loader->stubs = offset;
            offset += loader->symbol_count * STUB_BYTES;
        } else if (group == GROUP_CONSTANTS) {
            loader->table = offset;
            offset += loader->symbol_count * sizeof(uint64_t);
        }
        offset = align(offset, PAGE);
        if (offset > most_bytes)
            return malformed("too large");
    }
    loader->group_start[GROUP_COUNT] = offset;
    return 0;
}

static int map_pages(Loader *loader) {
    size_t length = loader->group_start[GROUP_COUNT];
    if (length == 0)
        return malformed("nothing to load");
    void *base = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        PyErr_SetFromErrno(PyExc_OSError);
        return -1;
    }
    loader->object->base = base;
    loader->object->length = length;
    for (size_t i = 0; i < loader->section_count; i++) {
        const Elf64_Shdr *section = &loader->sections[i];
        if (loader->section_offsets[i] != UINT64_MAX && section->sh_type != SHT_NOBITS)
            memcpy(loader->object->base + loader->section_offsets[i], loader->bytes + section->sh_offset,
                   section->sh_size);
    }
    return 0;
}

/* Vectorised mathematics lives in libmvec, which nothing else loads. */
static void *external_address(const char *name) {
    void *address = dlsym(RTLD_DEFAULT, name);
    static const char *const libraries[] = {"libm.so.6", "libmvec.so.1"};
    for (int i = 0; i < 2 && !address; i++) {
        void *library = dlopen(libraries[i], RTLD_NOW | RTLD_GLOBAL);
        address = library ? dlsym(library, name) : NULL;
    }
    return address;
}

static const char *symbol_name(const Loader *loader, const Elf64_Sym *symbol) {
    return symbol->st_name < loader->strings_length ? loader->strings + symbol->st_name : "";
}

static int resolve_external(Loader *loader, size_t index, const Elf64_Sym *symbol) {
    const char *name = symbol_name(loader, symbol);
    if (!*name)
        return 0; /* the empty first symbol */
    if (!strcmp(name, "_GLOBAL_OFFSET_TABLE_")) { /* our own table; only its mention is supported */
        loader->addresses[index] = (uint64_t)(uintptr_t)(loader->object->base + loader->table);
        return 0;
    }
    void *address = external_address(name);
    if (!address && ELF64_ST_BIND(symbol->st_info) != STB_WEAK) {
        PyErr_Format(PyExc_ValueError, "undefined symbol %.200s in an object file", name);
        return -1;
    }
    loader->addresses[index] = (uint64_t)(uintptr_t)address;
    unsigned char *stub = loader->object->base + loader->stubs + index * STUB_BYTES;
    static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0}; /* jmp *0(%rip), the address follows */
    memcpy(stub, jump, sizeof jump);
    memcpy(stub + sizeof jump, &loader->addresses[index], sizeof(uint64_t));
    return 0;
}

static int resolve_symbol(Loader *loader, size_t index) {
    const Elf64_Sym *symbol = &loader->symbols[index];
    size_t section = symbol->st_shndx;
    if (section == SHN_UNDEF)
        return resolve_external(loader, index, symbol);
    if (section == SHN_COMMON)
        return malformed("common symbols are not supported");
    if (section >= loader->section_count || loader->section_offsets[section] == UINT64_MAX)
        return 0; /* file names, sections that are not loaded */
    if (symbol->st_value > loader->sections[section].sh_size)
        return malformed("a symbol lies outside its section");
    loader->addresses[index] =
        (uint64_t)(uintptr_t)(loader->object->base + loader->section_offsets[section] + symbol->st_value);
    return 0;
}

static int resolve_symbols(Loader *loader) {
    for (size_t i = 0; i < loader->symbol_count; i++) {
        if (resolve_symbol(loader, i))
            return -1;
        memcpy(loader->object->base + loader->table + i * sizeof(uint64_t), &loader->addresses[i], sizeof(uint64_t));
    }
    return 0;
}

static int store_difference(unsigned char *place, int64_t value) {
    int32_t narrow = (int32_t)value;
    if (narrow != value)
        return malformed("a relocation is out of range");
    memcpy(place, &narrow, sizeof narrow);
    return 0;
}

static int store_absolute(unsigned char *place, uint64_t value, bool is_signed) {
    uint32_t narrow = (uint32_t)value;
    if (is_signed ? (int64_t)(int32_t)narrow != (int64_t)value : narrow != value)
        return malformed("an absolute relocation is out of range");
    memcpy(place, &narrow, sizeof narrow);
    return 0;
}

/* S, A, P and G are the names of the x86-64 psABI: symbol, addend, place, entry of the address table. */
static int apply(Loader *loader, const Elf64_Rela *relocation, unsigned char *place) {
    size_t index = ELF64_R_SYM(relocation->r_info);
    uint64_t A = (uint64_t)relocation->r_addend, P = (uint64_t)(uintptr_t)place, S = loader->addresses[index];
    uint64_t base = (uint64_t)(uintptr_t)loader->object->base;
    uint64_t G = base + loader->table + index * sizeof(uint64_t);
    switch (ELF64_R_TYPE(relocation->r_info)) {
    case R_X86_64_NONE:
        return 0;
    case R_X86_64_64:
        S += A;
        memcpy(place, &S, sizeof S);
        return 0;
    case R_X86_64_32:
        return store_absolute(place, S + A, false);
    case R_X86_64_32S:
        return store_absolute(place, S + A, true);
    case R_X86_64_PC64:
        S += A - P;
        memcpy(place, &S, sizeof S);
        return 0;
    case R_X86_64_PC32:
    case R_X86_64_PLT32:
        if (loader->symbols[index].st_shndx == SHN_UNDEF)
            S = base + loader->stubs + index * STUB_BYTES;
        return store_difference(place, (int64_t)(S + A - P));
    case R_X86_64_GOTPCREL:
    case R_X86_64_GOTPCRELX:
    case R_X86_64_REX_GOTPCRELX:
        return store_difference(place, (int64_t)(G + A - P));
    default:
        return malformed("a kind of relocation that is not supported");
    }
}

static uint64_t relocation_width(uint64_t type) {
    return type == R_X86_64_NONE ? 0 : type == R_X86_64_64 || type == R_X86_64_PC64 ? 8 : 4;
}

static int relocate_section(Loader *loader, const Elf64_Shdr *section) {
    size_t target = section->sh_info;
    if (target >= loader->section_count)
        return malformed("relocations for a section that does not exist");
    if (loader->section_offsets[target] == UINT64_MAX)
        return 0; /* of debug information */
    if (section->sh_entsize != sizeof(Elf64_Rela) || section->sh_offset % 8)
        return malformed("a bad relocation table");
    const Elf64_Rela *relocations = (const void *)(loader->bytes + section->sh_offset);
    unsigned char *base = loader->object->base + loader->section_offsets[target];
    for (size_t i = 0; i < section->sh_size / sizeof(Elf64_Rela); i++) {
        uint64_t width = relocation_width(ELF64_R_TYPE(relocations[i].r_info));
        if (!within(relocations[i].r_offset, width, loader->sections[target].sh_size) ||
            ELF64_R_SYM(relocations[i].r_info) >= loader->symbol_count)
            return malformed("a relocation is out of bounds");
        if (apply(loader, &relocations[i], base + relocations[i].r_offset))
            return -1;
    }
    return 0;
}

static int relocate(Loader *loader) {
    for (size_t i = 0; i < loader->section_count; i++) {
        if (loader->sections[i].sh_type == SHT_REL)
            return malformed("relocations without addends are not supported");
        if (loader->sections[i].sh_type == SHT_RELA && relocate_section(loader, &loader->sections[i]))
            return -1;
    }
    return 0;
}

static int protect(const Loader *loader) {
    for (int group = 0; group < GROUP_COUNT; group++) {
        uint64_t start = loader->group_start[group], end = loader->group_start[group + 1];
        if (end > start && mprotect(loader->object->base + start, end - start, group_protection[group])) {
            PyErr_SetFromErrno(PyExc_OSError);
            return -1;
        }
    }
    return 0;
}

static char *copy_name(const char *name) {
    size_t length = strlen(name) + 1;
    char *copy = PyMem_Malloc(length);
    if (copy)
        memcpy(copy, name, length);
    else
        PyErr_NoMemory();
    return copy;
}

/* Only functions in code pages can be asked for by name. */
static int keep_symbols(Loader *loader) {
    LoadedObject *object = loader->object;
    object->names = PyMem_Calloc(loader->symbol_count + 1, sizeof *object->names);
    object->addresses = PyMem_Calloc(loader->symbol_count + 1, sizeof *object->addresses);
    if (!object->names || !object->addresses) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < loader->symbol_count; i++) {
        const Elf64_Sym *symbol = &loader->symbols[i];
        uint64_t offset = loader->addresses[i] - (uint64_t)(uintptr_t)object->base;
        if (symbol->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || offset >= loader->stubs)
            continue;
        char *name = copy_name(symbol_name(loader, symbol));
        if (!name)
            return -1;
        object->names[object->symbol_count] = name;
        object->addresses[object->symbol_count++] = (void *)(uintptr_t)loader->addresses[i];
    }
    return 0;
}

static int load(Loader *loader) {
    if (read_header(loader) || read_sections(loader))
        return -1;
    loader->section_offsets = PyMem_Calloc(loader->section_count + 1, sizeof(uint64_t));
    loader->addresses = PyMem_Calloc(loader->symbol_count + 1, sizeof(uint64_t));
    if (!loader->section_offsets || !loader->addresses) {
        PyErr_NoMemory();
        return -1;
    }
    return place_sections(loader) || map_pages(loader) || resolve_symbols(loader) || relocate(loader) ||
                   keep_symbols(loader) || protect(loader)
               ? -1
               : 0;
}

/* The headers are read in place, so the bytes must be aligned for them. */
static unsigned char *aligned_copy(const unsigned char *bytes, size_t length) {
    unsigned char *copy = PyMem_Malloc(length + 1);
    if (copy)
        memcpy(copy, bytes, length);
    else
        PyErr_NoMemory();
    return copy;
}

LoadedObject *object_load(const unsigned char *bytes, size_t length) {
    Loader loader = {.length = length};
    loader.object = PyMem_Calloc(1, sizeof *loader.object);
    unsigned char *copy = loader.object ? aligned_copy(bytes, length) : (unsigned char *)PyErr_NoMemory();
    loader.bytes = copy;
    int status = copy ? load(&loader) : -1;
    PyMem_Free(loader.section_offsets);
    PyMem_Free(loader.addresses);
    PyMem_Free(copy);
    if (!status)
        return loader.object;
    object_free(loader.object);
    return NULL;
}

void *object_symbol(const LoadedObject *object, const char *name) {
    for (size_t i = 0; i < object->symbol_count; i++)
        if (!strcmp(object->names[i], name))
            return object->addresses[i];
    return NULL;
}

void object_free(LoadedObject *object) {
    if (!object)
        return;
    for (size_t i = 0; i < object->symbol_count; i++)
        PyMem_Free(object->names[i]);
    PyMem_Free(object->names);
    PyMem_Free(object->addresses);
    if (object->base)
        munmap(object->base, object->length);
    PyMem_Free(object);
}
