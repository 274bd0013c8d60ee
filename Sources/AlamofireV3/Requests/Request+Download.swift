import Alamofire
public import Foundation
public import FoundationNetworking

extension Request {
  /// Says where a downloaded file goes, given where it lies and the response. Called away from the main queue. A file
  /// that is there already, or a folder that is not, is an error: nothing is replaced, and no folder made.
  public typealias DownloadFileDestination = (URL, HTTPURLResponse) -> URL

  /// A destination in a folder of the system, under the name that the response suggests. The folder is made when it
  /// does not exist.
  ///
  /// - Parameters:
  ///   - directory: Which folder. Default: that of documents.
  ///   - domain: Whose. Default: the user's.
  public static func suggestedDownloadDestination(
    directory: FileManager.SearchPathDirectory = .documentDirectory,
    domain: FileManager.SearchPathDomainMask = .userDomainMask
  ) -> DownloadFileDestination {
    let destination = DownloadRequest.suggestedDownloadDestination(for: directory, in: domain)
    return { destination($0, $1).destinationURL }
  }
}
