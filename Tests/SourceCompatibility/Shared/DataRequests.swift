import Alamofire

#if IMPORTS_FOUNDATION
  import Foundation
#endif
#if IMPORTS_FOUNDATION_NETWORKING
  import FoundationNetworking
#endif

// Handlers of data requests, validation, and the properties of responses.

private let url = "http://localhost"

private struct User: Codable, Sendable {
  var name: String
}

private func handlers() {
  AF.request(url).response { response in
    let data: Data? = response.value ?? nil
    print(data as Any)
  }
  AF.request(url).response(queue: .global()) { (response: AFDataResponse<Data?>) in debugPrint(response) }
  AF.request(url).responseData { response in
    switch response.result {
    case .success(let data): print(data.count)
    case .failure(let error): print(error.localizedDescription)
    }
  }
  AF.request(url).responseData(queue: .global(), completionHandler: { print($0) })
  AF.request(url).responseData(
    queue: .main, dataPreprocessor: PassthroughPreprocessor(), emptyResponseCodes: [204],
    emptyRequestMethods: [.head]
  ) { _ in }
  AF.request(url).responseString { print($0.value ?? "") }
  AF.request(url).responseString(
    queue: .main, dataPreprocessor: StringResponseSerializer.defaultDataPreprocessor, encoding: .utf8,
    emptyResponseCodes: StringResponseSerializer.defaultEmptyResponseCodes,
    emptyRequestMethods: StringResponseSerializer.defaultEmptyRequestMethods
  ) { _ in }
  AF.request(url).responseDecodable(of: User.self) { response in print(response.value?.name as Any) }
  AF.request(url).responseDecodable { (response: DataResponse<[User], AFError>) in print(response) }
  AF.request(url).responseDecodable(
    of: [String: User].self, queue: .main, dataPreprocessor: .googleXSSI, decoder: JSONDecoder(),
    emptyResponseCodes: [204], emptyRequestMethods: [.head]
  ) { _ in }
  AF.request(url).responseDecodable(of: Empty.self, decoder: PropertyListDecoder()) { _ in }
}

@available(*, deprecated) private func untypedHandlers() {
  AF.request(url).responseJSON { response in
    if let object = response.value as? [String: Any] { print(object) }
  }
  AF.request(url).responseJSON { response in
    print(response)
    switch response.result {
    case .success(let object as [String: Any]): print(object)
    case .success(let value): print(value)
    case .failure(let error): print(error)
    }
  }
  AF.request(url).responseJSON(
    queue: .global(), dataPreprocessor: .passthrough, emptyResponseCodes: [204],
    emptyRequestMethods: [.head], options: [.fragmentsAllowed]
  ) { response in print(response.result) }
  AF.upload(Data(), to: url).responseJSON { print($0.value as? [Any] ?? []) }
  AF.download(url).responseJSON { response in print(response.value as Any) }
  AF.download(url).responseJSON(queue: .main, options: .allowFragments) { _ in }
}

private func serializers() {
  AF.request(url).response(responseSerializer: DataResponseSerializer()) { _ in }
  AF.request(url).response(queue: .main, responseSerializer: .string) { print($0.value ?? "") }
  AF.request(url).response(responseSerializer: .decodable(of: User.self)) { print($0.value as Any) }
  AF.request(url).response(
    queue: .main, responseSerializer: .decodable(of: User.self, decoder: JSONDecoder())
  ) { _ in }
}

private func validation(of request: DataRequest) {
  request
    .validate()
    .validate(statusCode: 200..<300)
    .validate(statusCode: [200, 201])
    .validate(statusCode: 200...299)
    .validate(contentType: ["application/json"])
    .validate(contentType: Set(["text/html"]))
    .validate { _, response, _ in
      response.statusCode == 200 ? .success(()) : .failure(AFError.explicitlyCancelled)
    }
    .validate { request, response, data -> DataRequest.ValidationResult in
      guard data != nil, request != nil else { return .failure(URLError(.badServerResponse)) }
      return .success(Void())
    }
    .response { _ in }
  let rule: DataRequest.Validation = { _, _, _ in .success(()) }
  request.validate(rule)
  print(request.convertible, request.data as Any)
}

private func responses(_ response: AFDataResponse<Data>) {
  let parts: (URLRequest?, HTTPURLResponse?, Data?) = (response.request, response.response, response.data)
  let metrics: URLSessionTaskMetrics? = response.metrics
  let result: Result<Data, AFError> = response.result
  print(parts, metrics as Any, response.serializationDuration, result, response.description)
  print(response.debugDescription, response.value as Any, response.error?.responseCode as Any)
  let mapped: DataResponse<Int, AFError> = response.map { $0.count }
  let tried: DataResponse<User, Error> = response.tryMap { try JSONDecoder().decode(User.self, from: $0) }
  let failed: DataResponse<Data, URLError> = response.mapError { _ in URLError(.unknown) }
  let triedError: DataResponse<Data, Error> = response.tryMapError { $0.underlyingError ?? $0 }
  print(mapped, tried, failed, triedError, mapped.map(String.init).value ?? "")
  let made = DataResponse<Int, AFError>(
    request: nil, response: nil, data: nil, metrics: nil, serializationDuration: 0, result: .success(1))
  let named: AFResult<Int> = made.result
  print(made, named)
}

private func printing() {
  AF.request(url).responseString { response in
    print("\(response)")
    debugPrint(response)
    if let error = response.error, error.isSessionTaskError { print(error) }
  }
  .responseData { _ in }
  .cURLDescription { print($0) }
}
