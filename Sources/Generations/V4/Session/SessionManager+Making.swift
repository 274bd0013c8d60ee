import Alamofire
import Foundation
import FoundationNetworking

// How the factories make their requests.
extension SessionManager {
  /// The body of an upload.
  enum Body {
    case data(Data)
    case file(URL)
    case stream(InputStream)
  }

  func data(_ make: () throws -> URLRequest) -> DataRequest {
    let bridge = RequestBridge(manager: self, make)
    return DataRequest(core.request(bridge.original.convertible, interceptor: bridge), bridge, of: self)
  }

  func download(
    to destination: DownloadRequest.DownloadFileDestination?, _ make: () throws -> URLRequest
  ) -> DownloadRequest {
    let bridge = RequestBridge(manager: self, make)
    return DownloadRequest(
      core.download(
        bridge.original.convertible, interceptor: bridge, to: bridge.notedDestination(destination)), bridge,
      of: self)
  }

  func upload(_ body: Body, _ make: () throws -> URLRequest) -> UploadRequest {
    let bridge = RequestBridge(manager: self, make)
    let upload =
      switch body {
      case .data(let data): core.upload(data, with: bridge.original.convertible, interceptor: bridge)
      case .file(let file): core.upload(file, with: bridge.original.convertible, interceptor: bridge)
      case .stream(let stream): core.upload(stream, with: bridge.original.convertible, interceptor: bridge)
      }
    return UploadRequest(upload, bridge, of: self)
  }

  /// Encodes on a background queue; the manager lives as long as that takes.
  func upload(_ form: FormUpload) {
    let form = Boxed(form)
    DispatchQueue.global(qos: .utility).async {
      let result = Boxed(form.value.encoded(for: self))
      (form.value.queue ?? .main).async { form.value.completion?(result.value) }
    }
  }
}

/// A form that is to be uploaded.
struct FormUpload {
  let fill: (MultipartFormData) -> Void
  let threshold: UInt64
  let request: Result<URLRequest>
  let queue: DispatchQueue?
  let completion: ((SessionManager.MultipartFormDataEncodingResult) -> Void)?

  func encoded(for manager: SessionManager) -> SessionManager.MultipartFormDataEncodingResult {
    let form = MultipartFormData()
    fill(form)
    do {
      var request = try request.unwrap()
      // Foundation ends the process when a copy of a request without a URL is changed. The transport refuses it.
      if request.url != nil { request.setValue(form.contentType, forHTTPHeaderField: "Content-Type") }
      guard form.contentLength >= threshold else {
        let upload = manager.upload(try form.encode(), with: request)
        return .success(request: upload, streamingFromDisk: false, streamFileURL: nil)
      }
      let file = try FormFile("org.alamofire.manager")
      do {
        try form.writeEncodedData(to: file.url)
      } catch {
        file.remove()
        throw error
      }
      let upload = manager.upload(file.url, with: request)
      upload.bridge.own(file)
      return .success(request: upload, streamingFromDisk: true, streamFileURL: file.url)
    } catch {
      return .failure(error)
    }
  }
}
