public import Alamofire

/// The share of one caller in a download of ``ImageDownloader``, for which others may wait, too.
///
/// ```swift
/// let downloader = ImageDownloader()
/// if let receipt = try downloader.download(URLRequest(url: url, method: .get)) {
///   downloader.cancelRequest(with: receipt)
/// }
/// ```
public struct RequestReceipt: Sendable {
  /// The request, which several receipts can share. Cancel the receipt rather than the request.
  public let request: DataRequest
  /// The name of the receipt, which is unique unless the caller chose another. Receipts of the same name are different.
  public let receiptID: String
  /// The number of the download.
  let number: UInt64
  /// The number of the receipt, because callers may give several the same name.
  let receipt: UInt64
}
