// CRC32c with the instructions of SSE4.2 where the CPU has them. RocksDB chooses when it is compiled; here its
// util/crc32c.cc is compiled twice, into two namespaces, and the choice is made when the program runs
// (docs/decisions/0016-unity-build-of-rocksdb.md).

#include "util/crc32c.h"

namespace ROCKSDB_NAMESPACE {

namespace crc32c_portable {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
uint32_t Crc32cCombine(uint32_t crc1, uint32_t crc2, size_t size2);
}  // namespace crc32c_portable

namespace crc32c_sse42 {
uint32_t Extend(uint32_t crc, const char* data, size_t size);
}  // namespace crc32c_sse42

namespace crc32c {

// False until the constructors of this file have run, which is slow but right.
static const bool has_sse42 = [] {
  __builtin_cpu_init();
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}();

uint32_t Extend(uint32_t crc, const char* data, size_t size) {
  return has_sse42 ? crc32c_sse42::Extend(crc, data, size) : crc32c_portable::Extend(crc, data, size);
}

uint32_t Crc32cCombine(uint32_t crc1, uint32_t crc2, size_t size2) {
  return crc32c_portable::Crc32cCombine(crc1, crc2, size2);
}

std::string IsFastCrc32Supported() { return has_sse42 ? "Supported on x86" : "Not supported on x86"; }

}  // namespace crc32c
}  // namespace ROCKSDB_NAMESPACE
