import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Downloads: destinations, resumption, handlers.

private let url = "http://localhost"

private struct User: Codable, Sendable {
  var name: String
}

private func making(data: Data, urlRequest: URLRequest) {
  let destination: DownloadRequest.Destination = { temporaryURL, response in
    let folder = FileManager.default.urls(for: .cachesDirectory, in: .userDomainMask)[0]
    return (
      folder.appendingPathComponent(response.suggestedFilename ?? temporaryURL.lastPathComponent),
      [.removePreviousFile, .createIntermediateDirectories]
    )
  }
  AF.download(url).response { _ in }
  AF.download(url, to: destination).response { _ in }
  AF.download(url, parameters: ["a": 1], to: destination).response { _ in }
  AF.download(
    url, method: .get, parameters: ["a": 1], encoding: URLEncoding.default, headers: ["A": "b"],
    interceptor: nil, shouldAutomaticallyResume: nil, requestModifier: { $0.timeoutInterval = 1 },
    to: destination
  ).response { _ in }
  AF.download(
    url, method: .post, parameters: ["a": "b"], encoder: JSONParameterEncoder.default, headers: nil,
    interceptor: .retryPolicy, shouldAutomaticallyResume: true, requestModifier: nil, to: destination
  ).response { _ in }
  AF.download(urlRequest).response { _ in }
  AF.download(urlRequest, interceptor: nil, shouldAutomaticallyResume: nil, to: destination).response { _ in }
  AF.download(resumingWith: data).response { _ in }
  AF.download(resumingWith: data, interceptor: nil, shouldAutomaticallyResume: nil, to: destination)
    .response { _ in }
  AF.download(url, to: { _, _ in (URL(fileURLWithPath: "/tmp/x"), []) }).response { _ in }
  AF.download(
    url, to: { temporaryURL, _ in (destinationURL: temporaryURL, options: .removePreviousFile) }
  )
  .response { _ in }
  let suggested = DownloadRequest.suggestedDownloadDestination()
  _ = DownloadRequest.suggestedDownloadDestination(for: .cachesDirectory)
  _ = DownloadRequest.suggestedDownloadDestination(
    for: .documentDirectory, in: .userDomainMask, options: [.createIntermediateDirectories])
  AF.download(url, to: suggested).response { _ in }
  print(DownloadRequest.Options(rawValue: 3), DownloadRequest.Options.removePreviousFile.rawValue)
}

private func handlers(_ download: DownloadRequest) {
  download.response { (response: AFDownloadResponse<URL?>) in print(response.fileURL as Any) }
  download.response(queue: .global()) { _ in }
  download.responseURL { response in print(response.value as Any) }
  download.responseURL(queue: .global()) { _ in }
  download.responseData { print($0.value as Any) }
  download.responseData(
    queue: .main, dataPreprocessor: .passthrough, emptyResponseCodes: [204], emptyRequestMethods: [.head]
  ) { _ in }
  download.responseString { print($0.value as Any) }
  download.responseString(
    queue: .main, dataPreprocessor: .passthrough, encoding: .utf8, emptyResponseCodes: [],
    emptyRequestMethods: []
  ) { _ in }
  download.responseDecodable(of: User.self) { print($0.value as Any) }
  download.responseDecodable { (response: AFDownloadResponse<User>) in print(response) }
  download.responseDecodable(
    of: [User].self, queue: .main, dataPreprocessor: .passthrough, decoder: JSONDecoder(),
    emptyResponseCodes: [], emptyRequestMethods: []
  ) { _ in }
}

private func validation(_ download: DownloadRequest) {
  download
    .validate()
    .validate(statusCode: 200..<300)
    .validate(contentType: ["text/plain"])
    .validate { _, response, fileURL in
      fileURL == nil && response.statusCode != 200 ? .failure(URLError(.badURL)) : .success(())
    }
    .downloadProgress { print($0.fractionCompleted) }
    .response { _ in }
  let rule: DownloadRequest.Validation = { _, _, _ in .success(()) }
  download.validate(rule)
}

private func cancelling(_ download: DownloadRequest) {
  download.cancel()
  download.cancel(producingResumeData: true)
  download.cancel(byProducingResumeData: { data in print(data as Any) })
  download.cancel { data in
    guard let data = data else { return }
    AF.download(resumingWith: data).response { _ in }
  }
  switch download.downloadable {
  case .request(let convertible): print(convertible)
  case .resumeData(let data): print(data)
  }
  print(download.resumeData as Any, download.fileURL as Any)
}

private func responses(_ response: AFDownloadResponse<Data>) {
  print(
    response.request as Any, response.response as Any, response.fileURL as Any, response.resumeData as Any)
  let metrics: URLSessionTaskMetrics? = response.metrics
  print(metrics as Any, response.serializationDuration, response.result, response.value as Any)
  print(response.error as Any, response.description, response.debugDescription)
  let mapped: DownloadResponse<Int, AFError> = response.map { $0.count }
  let tried: DownloadResponse<User, Error> = response.tryMap { try JSONDecoder().decode(User.self, from: $0) }
  let failed: DownloadResponse<Data, URLError> = response.mapError { _ in URLError(.unknown) }
  let triedError: DownloadResponse<Data, Error> = response.tryMapError { $0.underlyingError ?? $0 }
  let made = DownloadResponse<Int, AFError>(
    request: nil, response: nil, fileURL: nil, resumeData: nil, metrics: nil, serializationDuration: 0,
    result: .failure(.explicitlyCancelled))
  print(mapped, tried, failed, triedError, made)
}
