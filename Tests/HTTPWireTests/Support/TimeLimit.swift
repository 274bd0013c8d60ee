import Testing

extension Trait where Self == TimeLimitTrait {
  /// A minute; more under the sanitizers, which make everything several times slower.
  static var aMinute: Self {
    #if THREAD_SANITIZER || ADDRESS_SANITIZER
      .timeLimit(.minutes(5))
    #else
      .timeLimit(.minutes(1))
    #endif
  }
}
