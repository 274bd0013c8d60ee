import COpenSSL

/// Random numbers that cannot be predicted.
package enum OpenSSLRandom {
  /// Returns random words; `nil` if OpenSSL has no entropy.
  package static func words(_ count: Int) -> [UInt32]? {
    var words = [UInt32](repeating: 0, count: count)
    let status = words.withUnsafeMutableBytes { bytes in
      RAND_bytes(bytes.bindMemory(to: UInt8.self).baseAddress, Int32(bytes.count))
    }
    return status == 1 ? words : nil
  }
}
