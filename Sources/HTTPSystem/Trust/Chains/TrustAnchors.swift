import COpenSSL
import FoundationEssentials
import Glibc
package import HTTPWire
import Synchronization

/// The certificates at which chains have to end.
///
/// Unchecked: the store is filled before another thread can see it, and OpenSSL locks it afterwards.
package final class TrustAnchors: @unchecked Sendable {
  let store: OpaquePointer

  private init?() {
    guard let store = X509_STORE_new() else { return nil }
    self.store = store
  }

  deinit { X509_STORE_free(store) }

  /// Makes anchors of these certificates alone; `nil` if memory is short.
  package convenience init?(_ certificates: [X509Certificate]) {
    self.init()
    for certificate in certificates {
      guard X509_STORE_add_cert(store, certificate.pointer) == 1 else { return nil }
    }
  }

  /// Makes anchors of a PEM text and of a folder in OpenSSL's layout; `nil` if one of them cannot be read.
  private convenience init?(text: [UInt8]?, folder: String?) {
    self.init()
    ERR_clear_error()
    defer { ERR_clear_error() }
    if let text {
      guard let memory = OpenSSLMemory(reading: Data(text)), openssl_add_trusted(store, memory.pointer) == 1
      else {
        return nil
      }
    }
    if let folder, X509_STORE_load_path(store, folder) != 1 { return nil }
  }

  /// Returns the anchors of `store`, or the reason why it cannot be read. Files are read again if they have changed.
  package static func of(_ store: TransportOptions.TrustStore) -> Result<TrustAnchors, ChainFault> {
    switch store {
    case .system: return system(at: .system)
    case .file(let path): return kept(.file(ByteText(path)), file: path, folder: nil)
    case .pem(let data):
      if let anchors = keptTexts.withLock({ $0[data] }) { return .success(anchors) }
      guard let certificates = X509Certificate.all(in: data), !certificates.isEmpty,
        let anchors = TrustAnchors(certificates)
      else { return .failure(.unreadable("the given trust store (PEM)")) }
      keptTexts.withLock { $0.keep(anchors, for: data, bytes: data.count) }
      return .success(anchors)
    }
  }

  /// Returns the certificates that the machine trusts. If there are none, the fault names the package that has them.
  package static func system(at location: TrustLocation) -> Result<TrustAnchors, ChainFault> {
    let paths = [location.file, location.folder].compactMap(\.self).joined(separator: " and ")
    guard location.hasCertificates else { return .failure(.noAuthorities(in: paths.isEmpty ? nil : paths)) }
    return kept(.system(location), file: location.file, folder: location.folder)
  }

  private enum Source: Hashable {
    case system(TrustLocation)
    case file(ByteText)
  }

  private struct Kept {
    let anchors: TrustAnchors
    let mark: FileMark?
  }

  /// The state of a file, which changes with its content.
  private struct FileMark: Equatable {
    let device: UInt
    let inode: UInt
    let size: Int
    let changed: timespec

    init?(_ path: String) {
      var facts = stat()
      guard stat(path, &facts) == 0 else { return nil }
      device = UInt(facts.st_dev)
      inode = UInt(facts.st_ino)
      size = Int(facts.st_size)
      changed = facts.st_mtim
    }

    static func == (left: FileMark, right: FileMark) -> Bool {
      left.device == right.device && left.inode == right.inode && left.size == right.size
        && left.changed.tv_sec == right.changed.tv_sec && left.changed.tv_nsec == right.changed.tv_nsec
    }
  }

  /// The stores of files, for the loop and evaluators. It is never held together with `keptTexts`.
  private static let keptFiles = TrackedMutex<[Source: Kept]>([:])
  /// The stores of texts, for the loop and evaluators.
  private static let keptTexts = TrackedMutex(SizedTable<Data, TrustAnchors>(countLimit: 64))

  private static func kept(_ source: Source, file: String?, folder: String?) -> Result<
    TrustAnchors, ChainFault
  > {
    let mark = file.flatMap { FileMark($0) }
    if let kept = keptFiles.withLock({ $0[source] }), kept.mark == mark { return .success(kept.anchors) }
    let name = "the trust store \(file ?? folder ?? "of the system")"
    let text: [UInt8]?
    do throws(FileReadingFailure) {
      text = try file.map { path throws(FileReadingFailure) in
        try BoundedFile.content(of: path, mustBeRegular: true)
      }
    } catch {
      return .failure(.unreadable(name, advice: "check the path (\(error.reason))"))
    }
    guard let anchors = TrustAnchors(text: text, folder: folder) else { return .failure(.unreadable(name)) }
    keptFiles.withLock { files in
      if files.count >= 64 { files.removeAll() }
      files[source] = Kept(anchors: anchors, mark: mark)
    }
    return .success(anchors)
  }
}

/// The location of the system's trusted certificates. OpenSSL is built with the location of one distribution, but a
/// program may run on another one. OpenSSL's environment variables take precedence over both.
package struct TrustLocation: Sendable, Hashable {
  let file: String?
  /// One folder, or several with colons in between.
  let folder: String?

  /// Makes a location. Empty names count as none.
  package init(file: String?, folder: String?) {
    self.file = file?.isEmpty == true ? nil : file
    self.folder = folder?.isEmpty == true ? nil : folder
  }

  static let system = TrustLocation.find()

  /// Whether the location has a file with bytes, or a folder with files.
  var hasCertificates: Bool {
    var facts = stat()
    if let file, stat(file, &facts) == 0, facts.st_size > 0 { return true }
    return folder?.split(separator: ":").contains { Self.hasFiles(String($0)) } ?? false
  }

  private static func hasFiles(_ folder: String) -> Bool {
    guard let stream = opendir(folder) else { return false }
    defer { closedir(stream) }
    // Each folder has `.` and `..`.
    return readdir(stream) != nil && readdir(stream) != nil && readdir(stream) != nil
  }

  private static func find() -> TrustLocation {
    let named = TrustLocation(
      file: getenv("SSL_CERT_FILE").map { String(cString: $0) },
      folder: getenv("SSL_CERT_DIR").map { String(cString: $0) })
    if named.file != nil || named.folder != nil { return named }
    let files = [
      "/etc/ssl/certs/ca-certificates.crt",  // Debian, Ubuntu, Arch
      "/etc/pki/tls/certs/ca-bundle.crt",  // Fedora, RHEL
      "/etc/ssl/ca-bundle.pem",  // openSUSE
      "/etc/ssl/cert.pem",  // Alpine
    ]
    return TrustLocation(file: files.first { access($0, R_OK) == 0 }, folder: nil)
  }
}
