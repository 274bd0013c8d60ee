#define _GNU_SOURCE
#include "include/CVips.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// The types of GLib and libvips, as their headers define them.
typedef struct _VipsImage VipsImage;
typedef struct _VipsSource VipsSource;
typedef struct _VipsRegion VipsRegion;
typedef unsigned char VipsPel;
typedef int VipsBandFormat;
typedef int VipsInterpretation;
typedef size_t GType;
typedef int gboolean;
typedef char gchar;
typedef unsigned int guint;
typedef unsigned long guint64;
typedef void *gpointer;
typedef int GLogLevelFlags;
typedef void (*GLogFunc)(const gchar *, GLogLevelFlags, const gchar *, gpointer);

enum { format_uchar = 0, interpretation_srgb = 22, access_sequential = 1, warnings_and_less = 0xf0 };
enum { size_down = 2, size_force = 3 };
enum { fail_on_truncated = 1, hevc = 1, av1 = 4, deflate = 2 };

// Larger than the side of any image: the library's own maximum.
static const int no_bound = 10000000;

static const char *const profile_name = "icc-profile-data";

#define F(result, name, parameters) static result(*p_##name) parameters;
#include "functions.h"
#undef F

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[512];
static const char *failure;

static void ignore(const gchar *domain, GLogLevelFlags level, const gchar *message, gpointer context) {}

static void *library(void) {
  void *handle = dlopen("libvips.so.42", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) snprintf(problem, sizeof problem, "%s", dlerror());
  return handle;
}

static void load(void) {
  failure = problem;
  // A program that uses the library itself has its own settings.
  void *present = dlopen("libvips.so.42", RTLD_NOW | RTLD_NOLOAD);
  void *handle = library();
  if (!handle) return;
#define F(result, name, parameters)                                            \
  if (!(p_##name = (result(*) parameters)dlsym(handle, #name))) {              \
    snprintf(problem, sizeof problem, "libvips has no function %s", #name);    \
    return;                                                                    \
  }
#include "functions.h"
#undef F
  if (p_vips_init("alamofire")) {
    char *text = p_vips_error_buffer_copy();
    snprintf(problem, sizeof problem, "%s", text ? text : "libvips cannot be initialised");
    free(text);
    return;
  }
  failure = NULL;
  if (present) {
    dlclose(present);
    return;
  }
  // Images are computed beside each other, each by one thread. A cache of operations would store pixels of requests.
  p_vips_concurrency_set(1);
  p_vips_cache_set_max(0);
  // The library would write warnings about images of peers to the standard error.
  p_g_log_set_handler("VIPS", warnings_and_less, ignore, NULL);
}

const char *cvips_load(void) {
  pthread_once(&once, load);
  return failure;
}

int cvips_version_part(int part) { return p_vips_version(part); }
char *cvips_take_error(void) { return p_vips_error_buffer_copy(); }
// GLib allocates with malloc() since version 2.46, so that memory of both kinds can be freed before anything is loaded.
void cvips_free(void *memory) { free(memory); }
void cvips_end_of_work(void) { p_vips_thread_shutdown(); }
size_t cvips_memory(void) { return p_vips_tracked_get_mem(); }
size_t cvips_most_memory(void) { return p_vips_tracked_get_mem_highwater(); }
int cvips_threads(void) { return p_vips_concurrency_get(); }
int cvips_cached_operations(void) { return p_vips_cache_get_size(); }
bool cvips_has_operation(const char *name) { return p_vips_type_find("VipsOperation", name) != 0; }
const char *cvips_loader(const void *bytes, size_t count) { return p_vips_foreign_find_load_buffer(bytes, count); }

void cvips_release(VipsImageReference image) {
  if (image) p_g_object_unref(image);
}

VipsImageReference cvips_open(const void *bytes, size_t count, const char *options) {
  return p_vips_image_new_from_buffer(
      bytes, count, options, "access", access_sequential, "fail_on", fail_on_truncated, NULL);
}

VipsImageReference cvips_open_file(int file, enum cvips_file_format format, int shrink) {
  // The library reads from the place where the descriptor is.
  if (lseek(file, 0, SEEK_SET)) return NULL;
  VipsSource *source = p_vips_source_new_from_descriptor(file);
  if (!source) return NULL;
  VipsImage *image = NULL;
  int status = -1;
  if (format == cvips_jpeg)
    status = p_vips_jpegload_source(
        source, &image, "shrink", shrink, "access", access_sequential, "fail_on", fail_on_truncated, NULL);
  if (format == cvips_png)
    status = p_vips_pngload_source(source, &image, "access", access_sequential, "fail_on", fail_on_truncated, NULL);
  p_g_object_unref(source);
  return status ? NULL : image;
}

bool cvips_is_interlaced(VipsImageReference image) {
  return p_vips_image_get_typeof(image, "interlaced") != 0;
}

void cvips_read_facts(VipsImageReference image, struct cvips_facts *facts) {
  facts->width = p_vips_image_get_width(image);
  facts->height = p_vips_image_get_height(image);
  facts->page_height = p_vips_image_get_page_height(image);
  facts->pages = p_vips_image_get_n_pages(image);
  facts->bands = p_vips_image_get_bands(image);
  facts->pixel_bytes = facts->bands * (int)p_vips_format_sizeof(p_vips_image_get_format(image));
  facts->orientation = p_vips_image_get_orientation(image);
  facts->has_alpha = p_vips_image_hasalpha(image);
}

int cvips_delays(VipsImageReference image, int *delays, int capacity) {
  int *stored = NULL, count = 0;
  if (!p_vips_image_get_typeof(image, "delay")) return 0;
  if (p_vips_image_get_array_int(image, "delay", &stored, &count)) return 0;
  for (int i = 0; i < count && i < capacity; i++) delays[i] = stored[i];
  return count;
}

int cvips_loop(VipsImageReference image) {
  int loop = 0;
  if (p_vips_image_get_typeof(image, "loop")) p_vips_image_get_int(image, "loop", &loop);
  return loop;
}

static int bounded(int side) { return side > 0 ? side : no_bound; }
static int size_of(int width) { return width > 0 ? size_force : size_down; }

VipsImageReference cvips_scaled(VipsImageReference image, int width, int height, bool uses_profile) {
  VipsImage *out = NULL, *plain = NULL;
  // The library also looks for a profile in the image where no other is asked for.
  if (!uses_profile && p_vips_image_get_typeof(image, profile_name)) {
    if (p_vips_copy(image, &plain, NULL)) return NULL;
    p_vips_image_remove(plain, profile_name);
  }
  bool is_animated = p_vips_image_get_page_height(image) < p_vips_image_get_height(image);
  // Without a profile, the samples are in sRGB already, and converting them would change them.
  int status = p_vips_thumbnail_image(
      plain ? plain : image, &out, bounded(width), "height", bounded(height), "size", size_of(width), "no_rotate",
      (gboolean)is_animated, uses_profile ? "export_profile" : NULL, "srgb", NULL);
  cvips_release(plain);
  return status ? NULL : out;
}

const void *cvips_profile(VipsImageReference image, size_t *count) {
  const void *profile = NULL;
  if (!p_vips_image_get_typeof(image, profile_name)) return NULL;
  return p_vips_image_get_blob(image, profile_name, &profile, count) ? NULL : profile;
}

// Applies one step to an image that it releases.
#define THEN(image, call)                \
  do {                                   \
    VipsImage *next = NULL;              \
    int status = call;                   \
    p_g_object_unref(image);             \
    if (status) return NULL;             \
    image = next;                        \
  } while (0)

VipsImageReference cvips_plain(VipsImageReference in) {
  VipsImage *image = NULL;
  if (p_vips_copy(in, &image, NULL)) return NULL;
  if (p_vips_image_get_interpretation(image) != interpretation_srgb || p_vips_image_get_bands(image) < 3)
    THEN(image, p_vips_colourspace(image, &next, interpretation_srgb, NULL));
  // What is behind the alpha has no meaning for a screen.
  if (p_vips_image_get_bands(image) > 4) THEN(image, p_vips_extract_band(image, &next, 0, "n", 4, NULL));
  if (p_vips_image_get_format(image) != format_uchar) THEN(image, p_vips_cast(image, &next, format_uchar, NULL));
  return image;
}

VipsImageReference cvips_blurred(VipsImageReference in, double sigma) {
  VipsImage *image = NULL;
  bool has_alpha = p_vips_image_hasalpha(in);
  if (p_vips_copy(in, &image, NULL)) return NULL;
  if (has_alpha) THEN(image, p_vips_premultiply(image, &next, NULL));
  THEN(image, p_vips_gaussblur(image, &next, sigma, NULL));
  if (has_alpha) THEN(image, p_vips_unpremultiply(image, &next, NULL));
  THEN(image, p_vips_cast(image, &next, format_uchar, NULL));
  return image;
}

VipsImageReference cvips_wrap(
    const void *pixels, size_t count, int width, int height, int bands, int page_height, const int *delays,
    int delay_count, int loop) {
  VipsImage *image = p_vips_image_new_from_memory(pixels, count, width, height, bands, format_uchar);
  if (!image) return NULL;
  THEN(image, p_vips_copy(image, &next, "interpretation", interpretation_srgb, NULL));
  if (page_height < height) {
    p_vips_image_set_int(image, "page-height", page_height);
    p_vips_image_set_int(image, "n-pages", height / page_height);
    p_vips_image_set_int(image, "loop", loop);
    if (delay_count > 0) p_vips_image_set_array_int(image, "delay", delays, delay_count);
  }
  return image;
}

void cvips_kill(VipsImageReference image) { p_vips_image_set_kill(image, 1); }

VipsRegionReference cvips_region(VipsImageReference image) { return p_vips_region_new(image); }

void *cvips_compute(VipsRegionReference region, int width, int top, int rows, size_t *count) {
  return p_vips_region_fetch(region, 0, top, width, rows, count);
}

void cvips_release_region(VipsRegionReference region) {
  if (region) p_g_object_unref(region);
}

static int encode(
    VipsImage *image, enum cvips_file_format format, int quality, gboolean lossless, void **bytes, size_t *count) {
  switch (format) {
  case cvips_jpeg:
    return p_vips_jpegsave_buffer(image, bytes, count, "Q", quality, "optimize_coding", 1, "strip", 1, NULL);
  case cvips_png:
    return p_vips_pngsave_buffer(image, bytes, count, "strip", 1, NULL);
  case cvips_webp:
    return p_vips_webpsave_buffer(image, bytes, count, "Q", quality, "lossless", lossless, "strip", 1, NULL);
  case cvips_avif:
    return p_vips_heifsave_buffer(
        image, bytes, count, "Q", quality, "lossless", lossless, "compression", av1, "strip", 1, NULL);
  case cvips_heic:
    return p_vips_heifsave_buffer(
        image, bytes, count, "Q", quality, "lossless", lossless, "compression", hevc, "strip", 1, NULL);
  case cvips_gif:
    return p_vips_gifsave_buffer(image, bytes, count, "strip", 1, NULL);
  case cvips_tiff:
    return p_vips_tiffsave_buffer(image, bytes, count, "compression", deflate, "strip", 1, NULL);
  }
  return -1;
}

void *cvips_encode(
    VipsImageReference image, enum cvips_file_format format, int quality, bool lossless, size_t *count) {
  void *bytes = NULL;
  if (!encode(image, format, quality, lossless, &bytes, count)) return bytes;
  free(bytes);
  return NULL;
}
