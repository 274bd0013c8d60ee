import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Uploads and multipart forms.

private let url = "http://localhost"

private func making(data: Data, file: URL, stream: InputStream, urlRequest: URLRequest) {
  AF.upload(data, to: url).response { _ in }
  AF.upload(
    data, to: url, method: .put, headers: ["A": "b"], interceptor: nil, shouldAutomaticallyResume: nil,
    fileManager: .default, requestModifier: { $0.timeoutInterval = 1 }
  ).response { _ in }
  AF.upload(data, with: urlRequest).response { _ in }
  AF.upload(
    data, with: urlRequest, interceptor: nil, shouldAutomaticallyResume: nil, fileManager: .default
  ).response { _ in }
  AF.upload(file, to: url).uploadProgress { print($0) }.response { _ in }
  AF.upload(file, to: url, method: .post, headers: nil, interceptor: nil, fileManager: .default)
    .responseString { _ in }
  AF.upload(file, with: urlRequest).response { _ in }
  AF.upload(stream, to: url).response { _ in }
  AF.upload(
    stream, to: url, method: .post, headers: nil, interceptor: nil, fileManager: .default,
    requestModifier: nil
  ).response { _ in }
  AF.upload(stream, with: urlRequest).response { _ in }
}

private func forms(data: Data, file: URL, urlRequest: URLRequest, form: MultipartFormData) {
  AF.upload(
    multipartFormData: { multipartFormData in
      multipartFormData.append(data, withName: "one")
      multipartFormData.append(Data("two".utf8), withName: "two")
    }, to: url
  ).response { _ in }
  AF.upload(
    multipartFormData: { $0.append(data, withName: "one") }, to: url,
    usingThreshold: MultipartFormData.encodingMemoryThreshold, method: .post, headers: nil,
    interceptor: nil, fileManager: .default, requestModifier: nil
  ).response { _ in }
  AF.upload(multipartFormData: { $0.append(file, withName: "f") }, with: urlRequest).response { _ in }
  AF.upload(
    multipartFormData: { _ in }, with: urlRequest, usingThreshold: 1, interceptor: nil,
    fileManager: .default
  ).response { _ in }
  AF.upload(multipartFormData: form, to: url).response { _ in }
  AF.upload(
    multipartFormData: form, to: url, usingThreshold: 1, method: .put, headers: ["A": "b"],
    interceptor: .retryPolicy, shouldAutomaticallyResume: nil, fileManager: .default, requestModifier: nil
  ).response { _ in }
  AF.upload(multipartFormData: form, with: urlRequest).response { _ in }
  AF.upload(
    multipartFormData: form, with: urlRequest, usingThreshold: 1, interceptor: nil,
    shouldAutomaticallyResume: true, fileManager: .default
  ).response { _ in }
}

private func formParts(data: Data, file: URL, stream: InputStream) throws {
  let form = MultipartFormData()
  form.append(data, withName: "a")
  form.append(data, withName: "a", fileName: "a.txt")
  form.append(data, withName: "a", fileName: "a.txt", mimeType: "text/plain")
  form.append(data, withName: "a", mimeType: "text/plain")
  form.append(file, withName: "b")
  form.append(file, withName: "b", fileName: "b.txt", mimeType: "text/plain")
  form.append(stream, withLength: 3, name: "c", fileName: "c.txt", mimeType: "text/plain")
  form.append(stream, withLength: 3, headers: [.contentDisposition("form-data; name=\"d\"")])
  let encoded: Data = try form.encode()
  try form.writeEncodedData(to: file)
  print(encoded, form.contentType, form.contentLength, form.boundary)
  _ = MultipartFormData(fileManager: .default, boundary: "b")
  _ = MultipartFormData(boundary: "b")
}

private final class RelatedForm: MultipartFormData {
  override var contentType: String {
    get { "multipart/related; boundary=\(boundary)" }
    set { super.contentType = newValue }
  }
}

private func subclass() {
  _ = RelatedForm()
  _ = RelatedForm(fileManager: .default, boundary: "b")
}

private struct Document: UploadConvertible {
  func createUploadable() throws -> UploadRequest.Uploadable { .data(Data()) }
  func asURLRequest() throws -> URLRequest { try URLRequest(url: url, method: .put) }
}

private func uploadables(_ request: UploadRequest) throws {
  let convertible: UploadableConvertible = request.upload
  let data: DataRequest = request
  if let uploadable = request.uploadable {
    switch uploadable {
    case .data(let data): print(data)
    case .file(let file, let shouldRemove): print(file, shouldRemove)
    case .stream(let stream): print(stream)
    }
  }
  print(try convertible.createUploadable(), data, request.fileManager)
  let made: [UploadRequest.Uploadable] = [
    .data(Data()), .file(URL(fileURLWithPath: "/tmp"), shouldRemove: false),
    .stream(InputStream(data: Data())), try Document().createUploadable(),
  ]
  print(made.count)
}
