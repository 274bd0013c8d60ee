public import Foundation
import FoundationNetworking

/// The key of `URLError.userInfo` under which a failed download leaves the data that it can go on from.
///
/// The name that this constant has on other systems; the same as Foundation's
/// `URLSessionDownloadTaskResumeData` on Linux.
public let NSURLSessionDownloadTaskResumeData = URLSessionDownloadTaskResumeData

extension URLError {
  /// The data from which a failed download can go on, if this error carries some.
  public var downloadTaskResumeData: Data? {
    userInfo[NSURLSessionDownloadTaskResumeData] as? Data
  }
}
