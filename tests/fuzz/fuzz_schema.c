/* SPDX-License-Identifier: MIT */
/* tests/fuzz/fuzz_schema.c: any text as a schema, as a name and as a signature.
 *
 * Whatever parses must print, the print must parse to an equal schema and print the same again, and
 * the schema's own signature must serve it. Whatever does not parse must leave an error and nothing
 * else. */
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "op/equal.h"
#include "op/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)   \
    do {                  \
        if (!(condition)) \
            abort();      \
    } while (0)

static void check_schema(const tni_schema *schema)
{
    tni_schema *again = NULL;
    char *printed = NULL, *once_more = NULL, *signature = NULL;
    MUST(tni_schema_print(schema, &printed) == TN_OK);
    MUST(tni_schema_parse(printed, &again) == TN_OK);
    MUST(equal_schema(schema, again));
    MUST(tni_schema_print(again, &once_more) == TN_OK);
    MUST(strcmp(printed, once_more) == 0);
    tni_schema_free(again);
    MUST(tni_schema_signature(schema, &signature) == TN_OK);
    MUST(tni_signature_check(schema, signature) == TN_OK);
    tni_free(printed);
    tni_free(once_more);
    tni_free(signature);
}

/* A signature makes a schema that its own text describes. */
static void check_signature(const char *text)
{
    tni_schema *schema = NULL;
    char *signature = NULL;
    tn_status status = tni_schema_infer("aten::f", text, &schema);
    MUST((status == TN_OK) == (schema != NULL));
    if (status != TN_OK) {
        MUST(status == TN_INVALID && *tn_last_error());
        return;
    }
    MUST(tni_signature_check(schema, text) == TN_OK);
    MUST(tni_schema_signature(schema, &signature) == TN_OK);
    MUST(tni_signature_check(schema, signature) == TN_OK);
    check_schema(schema);
    tni_free(signature);
    tni_schema_free(schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    tni_schema *schema = NULL, *same = NULL;
    char *name = NULL;
    MUST(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    tn_clear_error();
    tn_status status = tni_schema_parse(text, &schema);
    MUST((status == TN_OK) == (schema != NULL));
    MUST(status == TN_OK || (status == TN_INVALID && *tn_last_error()));
    if (schema)
        check_schema(schema);
    tn_status named = tni_schema_parse_or_name(text, &same, &name);
    MUST((named == TN_OK) == (name != NULL));
    if (schema)
        MUST(named == TN_OK && same && equal_schema(schema, same) && !strcmp(name, schema->full));
    tni_schema_free(schema);
    tni_schema_free(same);
    tni_free(name);
    check_signature(text);
    free(text);
    return 0;
}
