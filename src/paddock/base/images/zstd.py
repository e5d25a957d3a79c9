"""zstd: the module of the standard library since Python 3.14, and its twin from PyPI before that."""

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, DecompressionParameter, ZstdCompressor, ZstdDecompressor, compress
else:
    from backports.zstd import CompressionParameter, DecompressionParameter, ZstdCompressor, ZstdDecompressor, compress

__all__ = ["CompressionParameter", "DecompressionParameter", "ZstdCompressor", "ZstdDecompressor", "compress"]
