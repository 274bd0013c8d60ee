import Foundation
import FoundationNetworking
import HTTPWire

/// Reads what ``TransportOptions/netrcFile`` names.
enum NetrcFile {
  /// Blocks for as long as the file takes.
  static func read(_ path: String, for url: String) -> Result<Netrc, AFError> {
    let path = (path as NSString).expandingTildeInPath
    do {
      return .success(
        Netrc(String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)))
    } catch {
      let code: URLError.Code =
        switch (error as? CocoaError)?.code {
        case .fileReadNoSuchFile?, .fileNoSuchFile?: .fileDoesNotExist
        case .fileReadNoPermission?: .noPermissionsToReadFile
        default: .resourceUnavailable
        }
      return .failure(
        .sessionTaskFailed(
          error: URLError.made(
            code, "TransportOptions.netrcFile cannot be read: \(path). Correct it, or set it to nil.",
            url: url)))
    }
  }
}
